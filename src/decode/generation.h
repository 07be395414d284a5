// Text generation with a decoder-only model for several prompts at once. The result for a prompt does not depend on the
// other prompts, bit by bit.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "decode/hypothesis.h"
#include "decode/text_cache.h"
#include "io/language_run.h"
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

// The user's options and those of the caller. stop and on_text are not used.
struct GenerationOptions : GenerateOptions {
  std::vector<int32_t> never = {};  // tokens that are excluded
  // Called after each token except the end token, with the number of the prompt and its text so far. Returning true
  // ends the text.
  std::function<bool(size_t prompt, const GeneratedIds&)> on_token = {};
};

using Prompts = std::vector<std::vector<int32_t>>;

// Continues prompts, and calls done(prompt, text) when a text is complete. If `ends` has a start token, it is put
// before each prompt. Throws Error for options out of range, tokens outside the vocabulary, and a prompt that does not
// fit into the context when sliding is off. After an exception the cache must not be used again.
void generate_ids(TextCache& cache, const Prompts& prompts, const TextEnds& ends, const GenerationOptions& options,
                  Arena& arena, const std::function<void(size_t prompt, GeneratedIds&&)>& done);

// Continues one prompt, with a temporary cache.
GeneratedIds generate_ids(const Transformer<float>& model, std::span<const int32_t> prompt, const TextEnds& ends,
                          const GenerationOptions& options, Arena& arena);

}  // namespace qkv
