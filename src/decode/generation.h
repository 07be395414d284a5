// Going on from a text with a decoder-only model, token by token, with the keys and values of what stands before kept.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "decode/hypothesis.h"
#include "io/language_run.h"
#include "model/transformer.h"

namespace qkv {

enum class ContextEnd { slide, stop };  // when the model's max_length is reached: forget the older half, or end there

struct GenerationOptions {
  int64_t max_tokens = 256;
  ContextEnd context_end = ContextEnd::slide;
  SearchOptions search = {};  // sampling, or else the most probable token each time; repetition_penalty; never
  // Called for each token but the end; true ends the text there.
  std::function<bool(int32_t token, float log_probability)> on_token = {};
};

struct GeneratedIds {
  std::vector<int32_t> ids = {};
  std::vector<float> log_probabilities = {};  // log p of each, and of the end token if it came: the model's own
  enum class End { document, length, context, caller } end = End::length;
};

// The prompt follows the start token, where the ends say that this stands before one. Throws Error for options out of
// range, tokens that the model does not have, and a prompt that does not fit where the context may not slide.
GeneratedIds generate_ids(const Transformer<float>& model, std::span<const int32_t> prompt, const TextEnds& ends,
                          const GenerationOptions& options, Arena& arena);

}  // namespace qkv
