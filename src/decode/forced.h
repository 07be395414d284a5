// Forced scoring: what a model thinks of a target that is given, in one pass over all its tokens.
#pragma once

#include <vector>

#include "core/arena.h"
#include "decode/ensemble.h"
#include "decode/hypothesis.h"

namespace qkv {

// A source, and what is said of it: without the start token; the end token counts if it is there.
struct ForcedInput {
  std::span<const int32_t> source, said;
};

struct Forced {
  std::vector<float> log_probabilities;  // [T]: log p of each token said
  std::vector<float> attention;          // [T, S]: row i is what was looked at while token i was said; if asked for
};

enum class WithAttention { no, yes };

// One batch. `place` is where attention is taken, in the first of the models. Throws Error if an id, a length or the
// place does not fit the model.
std::vector<Forced> force(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start,
                          WithAttention with, const AttentionPlace& place, Arena& arena);

// Throws Error, naming the option, unless the model has that layer and head; gives the layer counted from 0.
int64_t checked_layer(const AttentionPlace& place, const ModelConfig& config);

}  // namespace qkv
