// Decodes sentences: an engine's searches for what is asked, n_best hypotheses or alternatives, and their order.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decode/engine/engine.h"
#include "decode/search/hypothesis.h"

namespace qkv {

class SentenceSearch;

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

// The most that a request needs at once, and in total.
struct DecodingNeed {
  int64_t rows = 0, bytes = 0;
  CacheRows total = {};
};
DecodingNeed decoding_need(const Ensemble& models, const DecodingRequest& request);

class SentenceDecoder {
 public:
  // The hypotheses of a request: fewer than asked for if fewer were found, none if the model's output is NaN. A
  // coverage penalty is included in the scores and the order.
  struct Result {
    uint64_t key = 0;
    std::vector<Decoded> found = {};
    std::exception_ptr error = {};
  };

  // Makes a cache of these rows in `memory`. Both arenas, which may be the same one, must outlive the object.
  SentenceDecoder(const Ensemble& models, const CacheRows& rows, const EngineLimits& limits, Arena& memory,
                  Arena& scratch);
  ~SentenceDecoder();

  // After an exception of add, remove forgets the request.
  void add(const DecodingRequest& request);
  void remove(uint64_t key);
  void pause(uint64_t key, bool paused);

  // As Engine::step. Calls on_start when a request starts.
  using Start = std::function<void(uint64_t key)>;
  bool step(std::vector<Result>& results, const Start& on_start = {});
  void trim(Clock::time_point now) { engine_.trim(now); }

  int64_t bytes() const { return engine_.bytes(); }  // returns the bytes of keys and values that are reserved

 private:
  struct Request;

  void settle(SentenceSearch& search, std::vector<Result>& results);
  std::exception_ptr begin_alternatives(Request& request);
  std::vector<Decoded> ranked(std::vector<Decoded> found, const SearchInput& input, const SearchOptions& options);

  const Ensemble& models_;
  Arena& scratch_;
  KeyValueCache cache_;
  Engine engine_;
  std::map<uint64_t, std::unique_ptr<Request>> requests_;
};

// Searches one batch. Returns the n_best hypotheses of each sentence, best first: fewer if fewer were found, none if
// the model's output is NaN. A coverage penalty is included in the scores and the order.
std::vector<std::vector<Decoded>> n_best(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena);

// Returns n_best alternatives for each sentence of one batch. They differ in the first token after the prefix, and are
// in descending order of its probability; each is the best hypothesis that the search finds with that token.
std::vector<std::vector<Decoded>> alternatives(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                               const SearchOptions& options, Arena& arena);

}  // namespace qkv
