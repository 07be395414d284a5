// Decodes sequences step by step: a sequence waits for room, is extended by a token at each step, and leaves. The
// result of one does not depend on the others, bit by bit.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/arena.h"
#include "decode/engine/client_turns.h"
#include "decode/engine/sequence.h"

namespace qkv {

// Limits on what is decoded at once. A sequence that alone is beyond them must not be added.
struct EngineLimits {
  int64_t rows = std::numeric_limits<int64_t>::max();   // of a step
  int64_t bytes = std::numeric_limits<int64_t>::max();  // keys and values, in the worst case of everything that runs
  bool in_pieces = false;  // encode at most kEncodedTokens source tokens per thread and step, or one sentence
};

class Engine {
 public:
  using Done = std::vector<std::unique_ptr<Sequence>>;
  static constexpr int kMostOvertaken = 16;  // later sequences that start before one that does not fit

  // The cache, of which the engine alone opens sequences, and the arena of steps must outlive the engine.
  Engine(KeyValueCache& cache, const EngineLimits& limits, Arena& scratch);

  // Adds a sequence that starts in the turn of its client. cost: the number of tokens that it counts as.
  void add(std::unique_ptr<Sequence> sequence, const std::string& client = "", int64_t cost = 0);
  // Adds sequences in front of all that wait.
  void add_first(std::vector<std::unique_ptr<Sequence>> sequences, const std::string& client);
  // Remove without a result, and pause, the sequences of a request.
  void remove(uint64_t key);
  void pause(uint64_t key, bool paused);

  // Starts what has room, the clients in turn, and extends everything by a token. Appends the sequences that are
  // complete to `done`. Calls on_start, if set, when a sequence starts. Returns false if there was nothing to do. After
  // an exception the engine and the cache must not be used again.
  using Start = std::function<void(const Sequence&)>;
  bool step(Done& done, const Start& on_start = {});

  // Takes the most memory that a step can need: starts everything that waits, calls `enlarge`, which makes a sequence
  // as large as it can be, and computes a step. The values are meaningless.
  void rehearse(const std::function<void(Sequence&)>& enlarge);

  void trim(Clock::time_point now) { cache_.trim(now); }

  int64_t rows() const { return rows_; }  // returns the number of rows of a step that are reserved
  int64_t bytes() const { return bytes_of(reserved_); }

 private:
  struct Group;
  struct Entry {
    std::unique_ptr<Sequence> sequence;
    std::string client;
    int64_t turn = 0;
    int overtaken = 0;
  };

  bool start(Done& done, const Start& on_start);
  void open(const std::vector<Sequence*>& sequences);
  bool fits(const SequenceNeed& need, int64_t encoded) const;
  bool leaves_room(const Entry& entry) const;
  void take(const Entry& entry);
  void give_back(const Entry& entry);
  int64_t bytes_of(const CacheRows& rows) const;
  std::vector<Sequence*> running() const;
  // Computes the next tokens of all sequences of a step, in groups.
  std::vector<Group> next_of(const std::vector<Sequence*>& all);
  void take_done(Done& done);

  const Ensemble models_;
  KeyValueCache& cache_;
  const EngineLimits limits_;
  Context context_;
  std::list<Entry> waiting_;  // in the order in which they start
  std::list<Entry> running_;  // in the order in which they started
  ClientTurns turns_;
  ClientRoom client_rows_, client_bytes_;  // of the clients that have sequences running
  int64_t rows_ = 0;
  CacheRows reserved_;
};

}  // namespace qkv
