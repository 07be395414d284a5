// Forced scoring: the probability of a given target, in one pass over all its tokens.
#pragma once

#include <vector>

#include "core/arena.h"
#include "decode/engine/ensemble.h"
#include "decode/search/hypothesis.h"

namespace qkv {

// A source and a given target. The target has no start token; an end token is optional, and is scored if present.
// `start`: the tokens that the decoder starts from, which are not scored; empty means the start token of the call.
struct ForcedInput {
  std::span<const int32_t> source, target, start = {};
};

struct Forced {
  std::vector<float> log_probabilities;  // [T]: log p of each target token, if requested
  std::vector<float> attention;          // [T, S], if requested: row i has the weights with which token i was predicted
};

// The values that are computed: log-probabilities, attention or both.
enum class ForcedValues { scores, attention, both };

// Reads one batch. place: the layer and head of the first model whose attention is returned; attention alone runs that
// model only. Throws Error if an id, a length or the place is out of range for the model.
std::vector<Forced> force(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start,
                          ForcedValues values, const AttentionPlace& place, Arena& arena);

// Calls force for any number of pairs, in batches of at most `batch_tokens` source and target tokens.
std::vector<Forced> force_all(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start,
                              ForcedValues values, const AttentionPlace& place, Arena& arena,
                              int64_t batch_tokens = 4096);

// Assigns the logits of each target token to its row of rows[i]: [T, V], of input i. With several models, these are log
// of the mean probability.
void force_logits(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start, Arena& arena,
                  std::span<const Matrix<float>> rows);

// Returns the layer, counted from 0. Throws Error, naming the option, unless the model has this layer and head.
int64_t checked_layer(const AttentionPlace& place, const ModelConfig& config);

}  // namespace qkv
