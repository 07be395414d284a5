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

namespace qkv {

enum class ContextEnd { slide, stop };  // when the model's max_length is reached: forget the older half, or end there

struct GeneratedIds {
  using Alternatives = std::vector<std::pair<int32_t, float>>;  // tokens and log p, the most probable first

  std::vector<int32_t> ids = {};
  std::vector<float> log_probabilities = {};    // log p of each, and of the end token if it came: the model's own
  std::vector<Alternatives> alternatives = {};  // of these, where they were asked for
  enum class End { document, length, context, caller } end = End::length;
};

struct GenerationOptions {
  int64_t max_tokens = 256;
  ContextEnd context_end = ContextEnd::slide;
  SearchOptions search = {};  // sampling, or else the most probable token each time; repetition_penalty; never
  int64_t alternatives = 0;   // so many for each token
  int64_t batch = 1;          // texts side by side, at most
  // Called with the number of a prompt and what it has become, for each token but the end; true ends the text there.
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
