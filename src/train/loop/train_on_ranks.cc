// How a rank comes to train: it joins the others, gets a directory, and leaves, or fails, together with them.
#include <cstdlib>
#include <filesystem>

#include "core/fail.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "ranks/launcher.h"
#include "train/loop/private_directory.h"
#include "train/loop/ranks.h"

namespace qkv {
namespace {

// Returns the ranks, or null if there is one.
std::unique_ptr<Ranks> join(const RankOptions& options) {
  if (options.distributed == Distributed::off) return nullptr;
  Launch launch = find_launch([](const char* name) -> const char* { return std::getenv(name); });
  if (options.distributed == Distributed::automatic) {
    if (launch.ranks == 1) return nullptr;
  } else if (const std::string kind(names_of(options.distributed)[to_size(options.distributed)]); launch.kind != kind) {
    launch = {kind, "", 0};
  }
  const qkv_transport& transport = load_transport(plugin_path(launch.kind));
  return std::make_unique<Ranks>(transport, launch.ranks, launch.variable, options);
}

// Each rank reads the text itself.
void check_texts(const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    if (text == "-" || (std::filesystem::exists(text) && !std::filesystem::is_regular_file(text)))
      fail("{}: must be a regular file, because each rank reads it", text == "-" ? "standard input (-)" : text);
}

bool train_rank(Ranks& ranks, const std::string& out, const TrainingObserver& observer,
                const std::vector<std::string>& texts, const TrainOnRank& train) {
  // The answer counts after the first step. The question says that this process must not end without the others.
  if (observer.should_stop) observer.should_stop();
  if (ranks.is_first()) {
    check_texts(texts);
    return train(out, observer, &ranks);
  }
  const PrivateDirectory directory;
  const RunDirectory run(directory.path());
  make_directory(run.checkpoints());
  ranks.receive_run(run);
  TrainingObserver silent;
  silent.should_stop = observer.should_stop;
  return train(run.root(), silent, &ranks);
}

}  // namespace

bool train_on_ranks(const RankOptions& options, const std::string& out, const TrainingObserver& observer,
                    const std::vector<std::string>& texts, const TrainOnRank& train) {
  return run_on_ranks(options, [&](Ranks* ranks) {
    return ranks ? train_rank(*ranks, out, observer, texts, train) : train(out, observer, nullptr);
  });
}

bool run_on_ranks(const RankOptions& options, FunctionRef<bool(Ranks* ranks)> work) {
  std::unique_ptr<Ranks> ranks;
  try {
    ranks = join(options);
    const bool ended = work(ranks.get());
    if (ranks) ranks->communicator().leave();
    return ended;
  } catch (const ReportedElsewhere&) {
    return false;
  } catch (const std::exception& error) {
    if (ranks && ranks->communicator().fail(error.what())) return false;
    throw;
  }
}

}  // namespace qkv
