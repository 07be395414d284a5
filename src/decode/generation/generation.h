// Text generation with a decoder-only model for several prompts at once. The result for a prompt does not depend on the
// other prompts, bit by bit.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decode/generation/text_cache.h"
#include "decode/search/client_turns.h"
#include "decode/search/hypothesis.h"
#include "io/runs/run_kinds.h"
#include "qkv/generator.h"

namespace qkv {

// A generated text in token ids.
struct GeneratedIds {
  using Alternatives = std::vector<std::pair<int32_t, float>>;  // tokens and log p, most probable first

  std::vector<int32_t> ids = {};
  std::vector<float> log_probabilities =
      {};  // log p of each id, then of the end token if it was generated; without penalties and filters
  std::vector<Alternatives> alternatives = {};  // for each entry of log_probabilities, if requested
  enum class End { document, length, context, caller } end = End::length;
};

// Returns the most probable tokens, of which there are at most `count`. log_p: of every token.
GeneratedIds::Alternatives most_probable(std::span<const float> log_p, int64_t count);

// The user's options and those of the caller. stop and on_text are not used.
struct GenerationOptions : GenerateOptions {
  std::vector<int32_t> never = {};  // tokens that are excluded
  // Called after each token except the end token, with the number of the prompt and its text so far. Returning true
  // ends the text.
  std::function<bool(size_t prompt, const GeneratedIds&)> on_token = {};
};

using Prompts = std::vector<std::vector<int32_t>>;

// Tokens before which no start token is put. A start token that they begin with is the one that other prompts get, so
// that the same text has the same result.
struct CompletePrompt {
  std::vector<int32_t> ids;
  bool is_complete;

  CompletePrompt(const TextEnds& ends, std::vector<int32_t> tokens);
};

// A prompt to continue. The options must outlive its generation.
struct GenerationRequest {
  uint64_t key = 0;                  // names the text in results, and is the prompt of on_token
  std::vector<int32_t> prompt = {};  // without the start token, unless it is complete
  const GenerationOptions* options = nullptr;
  std::string salt = "";     // prefixes are shared with texts of the same salt
  std::string client = "";   // whose texts take turns with those of others
  bool is_complete = false;  // no start token is put before the prompt
};

// Throws Error for options out of range, tokens outside the vocabulary, and a prompt that does not fit into the context
// when sliding is off.
void check(const ModelConfig& model, const TextEnds& ends, const GenerationRequest& request);

// Returns the most rows of the cache that a text needs.
int64_t rows_needed(const ModelConfig& model, const TextEnds& ends, const GenerationRequest& request);

// Limits on what is generated at once.
struct GenerationLimits {
  int64_t texts = std::numeric_limits<int64_t>::max();
  int64_t rows = std::numeric_limits<int64_t>::max();  // of the cache, the most that the texts may need
};

// Generation of texts token by token. Texts come and go between steps; the result of one does not depend on the others.
class GenerationScheduler {
 public:
  struct Result {
    uint64_t key = 0;
    GeneratedIds text = {};
    std::exception_ptr error = {};
  };
  using Done = std::function<void(Result&&)>;
  static constexpr int kMostOvertaken = 16;  // later texts that start before one that does not fit

  // The cache and `ends` must outlive the object. If `ends` has a start token, it is put before each prompt that is not
  // complete.
  GenerationScheduler(TextCache& cache, const TextEnds& ends, const GenerationLimits& limits);
  ~GenerationScheduler();

  // Adds a text that check accepts.
  void add(GenerationRequest request);
  void remove(uint64_t key);
  void pause(uint64_t key, bool paused);

  // Starts texts that have room, the clients in turn; reads the next tokens, and chooses a token for each text that
  // has been read completely. Calls done when a text is complete, and on_start, if set, with the number of its tokens
  // that are not read again. Returns false if there was nothing to do. After an exception the object and the cache must
  // not be used again.
  using Start = std::function<void(uint64_t key, int64_t shared)>;
  bool step(Arena& arena, const Done& done, const Start& on_start = {});
  int64_t rows() const { return rows_; }  // returns the number of rows reserved for the texts that grow

 private:
  struct Growing;
  using Place = std::list<Growing>::iterator;

  bool start(const Done& done, const Start& on_start);
  void begin(GenerationRequest&& request, int64_t rows, const Start& on_start);
  std::vector<Place> read(Arena& arena);
  void choose(Growing& growing, std::span<float> log_p) const;
  std::optional<GeneratedIds::End> accept(Growing& growing);
  void close(Place growing);

  struct Waiting {
    GenerationRequest request;
    int64_t rows = 0;
    int64_t turn = 0;
    bool paused = false;
    int overtaken = 0;
  };

  TextCache& cache_;
  const TextEnds& ends_;
  const GenerationLimits limits_;
  const int64_t longest_;
  std::list<Waiting> waiting_;  // in the order in which they start
  ClientTurns turns_;
  std::list<Growing> growing_;
  int64_t rows_ = 0;  // reserved for the texts that grow
  ClientRoom client_texts_, client_rows_;
};

// Continues prompts, and calls done(prompt, text) when a text is complete. Throws Error as check does, and for a model
// whose output is not finite. After an exception the cache must not be used again.
void generate_ids(TextCache& cache, const Prompts& prompts, const TextEnds& ends, const GenerationOptions& options,
                  Arena& arena, const std::function<void(size_t prompt, GeneratedIds&&)>& done,
                  bool is_complete = false);

// Continues one prompt, with a temporary cache.
GeneratedIds generate_ids(const Transformer<float>& model, std::span<const int32_t> prompt, const TextEnds& ends,
                          const GenerationOptions& options, Arena& arena);

}  // namespace qkv
