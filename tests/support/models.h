// Small models with random weights, and batches of random sentences for them.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/random.h"
#include "core/to_size.h"
#include "model/transformer.h"

namespace qkv::testing {

// Two layers a side, every width another: d 6, 2 heads of key width 3 and value width 4, ffn 10, both vocabularies 13.
inline ModelConfig small_config() {
  ModelConfig c;
  c.source_vocab = c.target_vocab = 13;
  c.encoder_layers = c.decoder_layers = 2;
  c.d_model = 6;
  c.attention.heads = 2;
  c.attention.key_width = 3;
  c.attention.value_width = 4;
  c.ffn = 10;
  c.max_length = 20;
  return c;
}

// Initial weights plus normal noise of this deviation, so that gains are not 1 and biases not 0. The same float32
// values in float and double.
template <class Real>
void randomize(ParameterList<Real>& parameters, uint64_t seed, double deviation = 0.3) {
  parameters.initialize(seed);
  Random random(seed, Stream::test);
  for (Real& w : parameters.values())
    w = static_cast<Real>(static_cast<float>(static_cast<float>(w) + deviation * random.normal()));
}

// Where a parameter that is there has its values.
template <class Real>
Real* values_of(const ParameterList<Real>& parameters, const std::string& name) {
  return std::ranges::find(parameters.all(), name, &Parameter<Real>::name)->value;
}

// Tokens 3 … vocab − 1, after `end` = 2 and `start` = 1.
inline std::vector<int32_t> random_tokens(int64_t count, int64_t vocab, Random& random) {
  std::vector<int32_t> ids(to_size(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(3 + random.below(static_cast<uint64_t>(vocab - 3)));
  return ids;
}

// One pair of the batch: source x </s>, target <s> y, labels y </s>.
inline void append_pair(Batch& batch, std::vector<int32_t> x, std::vector<int32_t> y) {
  x.push_back(2);
  batch.source.append(x);
  batch.labels.insert(batch.labels.end(), y.begin(), y.end());
  batch.labels.push_back(2);
  y.insert(y.begin(), 1);
  batch.target.append(y);
}

// Makes a batch one of an encoder alone: without targets, and with a random label for the first and every third token.
inline void mask_sources(Batch& batch, int64_t vocab, Random& random) {
  batch.target.clear();
  for (int32_t token = 0; token < batch.source.tokens(); token += 3) batch.masked.push_back(token);
  batch.labels = random_tokens(std::ssize(batch.masked), vocab, random);
}

// Pair i has source_lengths[i] and target_lengths[i] tokens, the end token included. For a decoder-only model there are
// no sources, for an encoder alone no targets.
inline Batch random_batch(const ModelConfig& config, std::span<const int64_t> source_lengths,
                          std::span<const int64_t> target_lengths, uint64_t seed, const ItemInputs& items = {}) {
  Random random(seed, Stream::test);
  Batch batch;
  for (size_t i = 0; i < source_lengths.size(); i++) {
    std::vector<int32_t> x;
    if (config.has_encoder()) x = random_tokens(source_lengths[i] - 1, config.source_vocab, random);
    append_pair(batch, std::move(x), random_tokens(target_lengths[i] - 1, config.output_vocab(), random));
  }
  if (!config.has_encoder()) batch.source.clear();
  if (!config.has_decoder()) mask_sources(batch, config.source_vocab, random);
  if (config.token_types > 0)
    for (int64_t n = 0; n < batch.source.tokens(); n++)
      batch.source.types.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(config.token_types))));
  if (items.gap_buckets > 0)
    for (int64_t n = 0; n < batch.target.tokens(); n++)
      batch.target.gaps.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(items.gap_buckets))));
  return batch;
}

}  // namespace qkv::testing
