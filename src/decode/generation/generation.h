// Text generation with a decoder-only model for several prompts at once. The result for a prompt does not depend on the
// other prompts, bit by bit.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "decode/engine/sequence.h"
#include "decode/search/hypothesis.h"
#include "decode/search/restrictions.h"
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
  bool is_complete = false;  // no start token is put before the prompt
};

// Throws Error for options out of range, tokens outside the vocabulary, and a prompt that does not fit into the context
// when sliding is off.
void check(const ModelConfig& model, const TextEnds& ends, const GenerationRequest& request);

// Returns the most rows of the cache that a text needs.
int64_t rows_needed(const ModelConfig& model, const TextEnds& ends, const GenerationRequest& request);

// Generation of a text in an engine with a cache for texts.
class TextGeneration : public Sequence {
 public:
  // The request is one that check accepts. `ends` must outlive the object. If it has a start token, it is put before a
  // prompt that is not complete.
  TextGeneration(const ModelConfig& model, const TextEnds& ends, GenerationRequest request);

  void start(KeyValueCache& cache, KeyValueCache::Sentence&&) override { open(cache); }
  void close(KeyValueCache& cache) override { cache.close(*seen_); }

  void read(KeyValueCache& cache) override { cache.add(*seen_); }
  RowRange predicting() const override;
  void extend(Matrix<float> log_p, int64_t row, KeyValueCache&) override;
  void emit(KeyValueCache& cache) override;
  bool is_done() const override { return is_done_; }

  // Returns the number of tokens at the beginning that were not read again.
  int64_t shared() const { return static_cast<int64_t>(seen_->shared); }
  // Returns the text once it is complete. Throws the error that has ended it.
  GeneratedIds take();

 private:
  void choose(std::span<float> log_p);
  std::optional<GeneratedIds::End> accept(KeyValueCache& cache);
  void open(KeyValueCache& cache);

  const TextEnds& ends_;
  const GenerationRequest request_;
  const GenerationOptions& options_;
  const SearchOptions search_;
  const int64_t longest_;                // the model's max_length
  std::vector<int32_t> text_;            // including the start token
  KeyValueCache::Text* seen_ = nullptr;  // the part of it that the model sees
  Random random_;
  GeneratedIds result_ = {};
  TokenCounts counts_ = {};  // of the tokens of the result, if a penalty needs them
  int32_t next_ = -1;        // the token chosen last; −1: none
  bool is_done_ = false;
  std::exception_ptr error_ = {};
};

// Continues prompts, and calls done(prompt, text) when a text is complete. Throws Error as check does, and for a model
// whose output is not finite. After an exception the cache must not be used again.
void generate_ids(KeyValueCache& cache, const Prompts& prompts, const TextEnds& ends, const GenerationOptions& options,
                  Arena& arena, const std::function<void(size_t prompt, GeneratedIds&&)>& done,
                  bool is_complete = false);

// Continues one prompt, with a temporary cache.
GeneratedIds generate_ids(const Transformer<float>& model, std::span<const int32_t> prompt, const TextEnds& ends,
                          const GenerationOptions& options, Arena& arena);

}  // namespace qkv
