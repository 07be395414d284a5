// Training by several processes, called ranks: how they meet, agree, and end.
//
// Rank 0 prepares the run and writes its files. The others get the files that describe the run by messages, keep them
// in a directory of their own, and train as if they resumed it. All ranks read the training text themselves.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "io/runs/run_directory.h"
#include "qkv/training.h"
#include "ranks/communicator.h"
#include "ranks/rank_messages.h"

namespace qkv {

class Ranks {
 public:
  // Connects the ranks, and exchanges their versions, instruction sets and hosts. Throws Error if they differ.
  Ranks(const qkv_transport& transport, int expected, const std::string& source, const RankOptions& options);

  Communicator& communicator() { return communicator_; }
  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  bool is_first() const { return rank() == 0; }
  // Returns the ranks in one line, such as "ranks: 4 on 2 hosts, with 8 threads each".
  std::string summary() const;
  const std::vector<Hello>& hellos() const { return hellos_; }  // by rank

  // Throws Error if a rank would have no shard.
  void check_shards(int64_t shards) const;
  // Sends the files that describe a run from rank 0 to the others, which write them to their directory.
  void send_run(const RunDirectory& run);
  void receive_run(const RunDirectory& run);
  // Throws Error on rank 0, naming the first rank that differs, unless the value is the same on all ranks.
  // `what` describes it, such as "other training data than"; `advice` follows.
  void agree(const std::string& what, const std::string& value, const std::string& advice);

  // Rank 0 commands, the others obey. `step` is the number of completed steps.
  void command(Command command, int64_t step);
  Command next_command(int64_t step);

 private:
  void meet();
  template <class Read>
  auto read_from(int rank, Read&& read);

  Communicator communicator_;
  std::vector<Hello> hellos_;  // by rank
};

// Returns "", or a line that names a rank whose launcher lets it use a part of a machine of which the rest is idle.
std::string unused_processors(const std::vector<Hello>& ranks);

// Connects the ranks that a launcher started, and returns work(ranks); `ranks` is null if there is one. A rank that
// throws ends all. Returns false if rank 0 reports the error of this one.
bool run_on_ranks(const RankOptions& options, FunctionRef<bool(Ranks* ranks)> work);

// Trains on the ranks that a launcher started, or on one. `train(out, observer, ranks)` does it; `ranks` is null if
// there is one. On ranks above 0, `out` is a directory that is removed at the end, and the observer reports nothing.
// `texts` are files that all ranks read.
using TrainOnRank = std::function<bool(const std::string& out, const TrainingObserver& observer, Ranks* ranks)>;
bool train_on_ranks(const RankOptions& options, const std::string& out, const TrainingObserver& observer,
                    const std::vector<std::string>& texts, const TrainOnRank& train);

}  // namespace qkv
