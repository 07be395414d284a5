// Going on from texts with a decoder-only model, token by token, several at the same time: each gets the tokens that it
// gets alone, bit by bit.
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

struct GeneratedIds {
  using Alternatives = std::vector<std::pair<int32_t, float>>;  // tokens and log p, the most probable first

  std::vector<int32_t> ids = {};
  std::vector<float> log_probabilities = {};    // log p of each, and of the end token if it came: the model's own
  std::vector<Alternatives> alternatives = {};  // of these, where they were asked for
  enum class End { document, length, context, caller } end = End::length;
};

// The user's options, and what the caller adds. stop and on_text are not used.
struct GenerationOptions : GenerateOptions {
  std::vector<int32_t> never = {};  // tokens that are excluded
  // Called with the number of a prompt and its text so far, for each token but the end; true ends the text there.
  std::function<bool(size_t prompt, const GeneratedIds&)> on_token = {};
};

using Prompts = std::vector<std::vector<int32_t>>;

// Calls done(prompt, text) as each text is complete. A prompt follows the start token where the ends say so. Throws
// Error for options out of range, tokens that the model does not have, and a prompt that does not fit where the context
// may not slide; after an exception the cache is of no more use.
void generate_ids(TextCache& cache, const Prompts& prompts, const TextEnds& ends, const GenerationOptions& options,
                  Arena& arena, const std::function<void(size_t prompt, GeneratedIds&&)>& done);

// The same for one prompt, with a cache of its own.
GeneratedIds generate_ids(const Transformer<float>& model, std::span<const int32_t> prompt, const TextEnds& ends,
                          const GenerationOptions& options, Arena& arena);

}  // namespace qkv
