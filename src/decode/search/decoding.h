// SearchScheduler of sentences step by step: a sentence waits for room, is searched, or searched twice for
// alternatives, and its hypotheses are ranked. Sentences come and go between steps; the result of one does not depend
// on the others.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decode/search/client_turns.h"
#include "decode/search/search.h"

namespace qkv {

// A sentence to decode. The options and what the input refers to must outlive its decoding.
struct DecodingRequest {
  uint64_t key = 0;  // names the sentence in results and in TokenEvent::sequence
  SearchInput input = {};
  const SearchOptions* options = nullptr;
  // Find n_best alternatives that differ in the first token after the prefix, in descending order of its probability;
  // each is the best hypothesis with that token. Otherwise find the n_best hypotheses, best first.
  bool alternatives = false;
  // The client, whose texts take turns with those of others, and the number of tokens that this sentence counts as.
  std::string client = "";
  int64_t cost = 0;
};

// Limits on what is decoded at once. A request that alone is beyond them must not be added.
struct DecodingLimits {
  int64_t rows = std::numeric_limits<int64_t>::max();   // hypotheses
  int64_t bytes = std::numeric_limits<int64_t>::max();  // keys and values, in the worst case of everything that runs
  bool in_pieces = false;  // encode at most kEncodedTokens source tokens per thread and step, or one sentence
};

// The most that a request needs at once, and in total.
struct DecodingNeed {
  int64_t rows = 0, bytes = 0;
  CacheRows total = {};
};
DecodingNeed decoding_need(const Ensemble& models, const DecodingRequest& request);

class SearchScheduler {
 public:
  // The hypotheses of a request: fewer than asked for if fewer were found, none if the model's output is NaN. A
  // coverage penalty is included in the scores and the order.
  struct Result {
    uint64_t key = 0;
    std::vector<Decoded> found = {};
    std::exception_ptr error = {};
  };
  static constexpr int kMostOvertaken = 16;  // later requests that start before one that does not fit

  // Arguments are those of Search.
  SearchScheduler(const Ensemble& models, const CacheRows& rows, const DecodingLimits& limits, Arena& memory,
                  Arena& scratch);
  ~SearchScheduler();

  // After an exception of add, remove forgets the request.
  void add(const DecodingRequest& request);
  void remove(uint64_t key);
  void pause(uint64_t key, bool paused);

  // Starts what has room, the clients in turn, and extends all hypotheses by a token. Appends the requests that are
  // complete to `results`. Calls on_start, if set, when a request starts. Returns false if there was nothing to do.
  // After an exception the object must not be used again.
  using Start = std::function<void(uint64_t key)>;
  bool step(std::vector<Result>& results, const Start& on_start = {});
  void trim(Clock::time_point now) { search_.trim(now); }

  int64_t rows() const { return rows_; }  // returns the number of hypotheses with room
  int64_t bytes() const { return reserved_.self + reserved_.cross == 0 ? 0 : cache_bytes(models_, reserved_); }

 private:
  struct Job;
  // One search of a request.
  struct Part {
    uint64_t task = 0;
    Job* job = nullptr;
    SearchInput input = {};
    const SearchOptions* options = nullptr;
    size_t place = 0;  // among the alternatives
    CacheRows need = {};
    int64_t turn = 0;
    int overtaken = 0;
  };

  bool start(std::vector<Result>& results, const Start& on_start);
  bool fits(const Part& part, int64_t encoded) const;
  Part part_of(Job& job, const SearchInput& input, const SearchOptions& options, size_t place);
  void release(const Part& part);
  bool leaves_room(const Part& part) const;
  void settle(Search::Result&& result, std::vector<Result>& results);
  void begin_alternatives(Job& job);
  void rank(const Part& part, std::vector<Decoded>& found);

  const Ensemble& models_;
  const DecodingLimits limits_;
  Arena& scratch_;
  Search search_;
  std::map<uint64_t, std::unique_ptr<Job>> jobs_;
  std::list<Part> waiting_;  // in the order in which they start
  ClientTurns turns_;
  ClientRoom client_rows_, client_bytes_;  // of the clients that have texts running
  std::map<uint64_t, Part> running_;
  uint64_t tasks_ = 0;
  int64_t rows_ = 0;
  CacheRows reserved_;
};

}  // namespace qkv
