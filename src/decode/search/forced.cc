#include "decode/search/forced.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/batches.h"
#include "decode/engine/ensemble.h"

namespace qkv {
namespace {

constexpr int64_t kRows = 256;  // tokens whose log p are held at once

// Decoder inputs and the tokens that follow them, one sequence after the other.
struct PackedPairs {
  Packed source, read;
  std::vector<int32_t> targets;
  std::vector<int64_t> forced;  // tokens of each sequence that belong to its start and are not scored
};

PackedPairs pack(const std::vector<ForcedInput>& inputs, int32_t start) {
  PackedPairs result;
  for (const ForcedInput& input : inputs) {
    std::vector<int32_t> read(input.start.begin(), input.start.end());
    if (read.empty()) read = {start};
    read.insert(read.end(), input.target.begin(), input.target.end());
    result.targets.insert(result.targets.end(), read.begin() + 1, read.end());
    read.pop_back();
    result.source.append(input.source);
    result.read.append(read);
    result.forced.push_back(std::ssize(read) - std::ssize(input.target));
  }
  return result;
}

// Computes the cross-attention of one layer for every sequence. Runs the layer again, because the stack keeps only its
// inputs.
void take_attention(const Transformer<float>& model, const PackedPairs& batch, const Transformer<float>::Saved& saved,
                    const AttentionPlace& place, Context& c, std::vector<Forced>& results) {
  const Arena::Scope scope(c.arena);
  const size_t layer = to_size(checked_layer(place, model.config()));
  const Sequences self = sequences_of(batch.read, batch.read), cross = sequences_of(batch.read, batch.source);
  Layer<float>::Saved s;
  c.positions = batch.read.positions;
  model.decoder().layers()[layer].forward(saved.decoder.inputs[layer], saved.memory, self, cross, c, s);
  for (size_t i = 0; i < results.size(); i++) {
    const int64_t T = cross.q_end[i] - cross.q_begin[i], S = cross.k_end[i] - cross.k_begin[i];
    std::vector<float>& weights = results[i].attention;
    weights.resize(to_size(T * S));
    model.decoder().layers()[layer].cross_attention().weights(
        cross, Causal::none, s.cross_attention, static_cast<int64_t>(i), place.head, {weights.data(), T, S});
    weights.erase(weights.begin(), weights.begin() + batch.forced[i] * S);
  }
}

void check_targets(const PackedPairs& batch, int64_t vocab) {
  for (const int32_t id : batch.targets)
    if (id < 0 || id >= vocab) fail("forced scoring: target token must be between 0 and {} (is {})", vocab - 1, id);
}

Context scoring_context(Arena& arena) { return {.arena = arena, .recompute = true, .inference = true}; }

// Returns the decoder's output in the first `count` models. Calls f with the pass of the first one.
template <class F>
std::vector<Matrix<float>> hidden_states(const Ensemble& models, size_t count, const PackedPairs& batch, Context& c,
                                         F&& f) {
  check_targets(batch, models.config().target_vocab);
  std::vector<Matrix<float>> hidden;
  for (size_t m = 0; m < count; m++) {
    Transformer<float>::Saved saved;
    models[m].host().forward(batch.source, batch.read, c, saved);
    hidden.push_back(saved.h);
    if (m == 0) f(saved);
  }
  return hidden;
}

// Calls f with the number of the first of some rows, and their logits in each model, which f may overwrite.
template <class F>
void for_logits(const Ensemble& models, const std::vector<Matrix<float>>& hidden, Context& c, F&& f) {
  const int64_t rows = hidden.front().rows;
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const Arena::Scope block(c.arena);
    std::vector<Matrix<float>> logits;
    for (size_t m = 0; m < models.size(); m++)
      logits.push_back(models[m].host().output().logits(hidden[m].row_range(begin, std::min(rows, begin + kRows)), c));
    f(begin, logits);
  }
}

}  // namespace

int64_t checked_layer(const AttentionPlace& place, const ModelConfig& config) {
  const int64_t layer = place.layer < 0 ? config.decoder_layers + place.layer : place.layer;
  if (layer < 0 || layer >= config.decoder_layers)
    fail("attention: layer {} does not exist (the decoder has {} layers)", place.layer + (place.layer >= 0),
         config.decoder_layers);
  if (place.head < 0 || place.head >= config.attention.heads)
    fail("attention: head {} does not exist (the model has {} heads)", place.head + 1, config.attention.heads);
  return layer;
}

std::vector<Forced> force(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start,
                          ForcedValues values, const AttentionPlace& place, Arena& arena) {
  std::vector<Forced> results(inputs.size());
  const PackedPairs batch = pack(inputs, start);
  const Arena::Scope scope(arena);
  Context c = scoring_context(arena);
  const bool scores = values != ForcedValues::attention;
  const auto hidden =
      hidden_states(models, scores ? models.size() : 1, batch, c, [&](const Transformer<float>::Saved& saved) {
        if (values != ForcedValues::scores) take_attention(models.front().host(), batch, saved, place, c, results);
      });
  if (!scores) return results;

  std::vector<float> log_p(batch.targets.size());
  for_logits(models, hidden, c, [&](int64_t begin, std::span<const Matrix<float>> logits) {
    const Matrix<float> all = log_mean_probability(logits);
    for (int64_t n = 0; n < all.rows; n++) log_p[to_size(begin + n)] = all(n, batch.targets[to_size(begin + n)]);
  });
  auto next = log_p.begin();
  for (size_t i = 0; i < inputs.size(); i++) {
    next += batch.forced[i];
    results[i].log_probabilities.assign(next, next + std::ssize(inputs[i].target));
    next += std::ssize(inputs[i].target);
  }
  return results;
}

std::vector<Forced> force_all(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start,
                              ForcedValues values, const AttentionPlace& place, Arena& arena, int64_t batch_tokens) {
  std::vector<int64_t> lengths;
  for (const ForcedInput& input : inputs) lengths.push_back(std::ssize(input.source) + std::ssize(input.target));
  const Batches batches = cut_by_length(lengths, batch_tokens);
  std::vector<Forced> results(inputs.size());
  for (size_t b = 0; b < batches.size(); b++) {
    std::vector<ForcedInput> batch;
    for (const size_t i : batches[b]) batch.push_back(inputs[i]);
    std::vector<Forced> found = force(models, batch, start, values, place, arena);
    for (size_t i = 0; i < found.size(); i++) results[batches[b][i]] = std::move(found[i]);
  }
  return results;
}

void force_logits(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start, Arena& arena,
                  std::span<const Matrix<float>> rows) {
  const PackedPairs batch = pack(inputs, start);
  std::vector<float*> places;  // of each row of the batch; null for those that are not returned
  for (size_t i = 0; i < inputs.size(); i++) {
    places.resize(places.size() + to_size(batch.forced[i]));
    for (int64_t n = 0; n < rows[i].rows; n++) places.push_back(rows[i].row(n));
  }
  const Arena::Scope scope(arena);
  Context c = scoring_context(arena);
  const auto hidden = hidden_states(models, models.size(), batch, c, [](const Transformer<float>::Saved&) {});
  for_logits(models, hidden, c, [&](int64_t begin, std::span<const Matrix<float>> logits) {
    const Matrix<float> all = models.size() == 1 ? logits.front() : log_mean_probability(logits);
    for (int64_t n = 0; n < all.rows; n++)
      if (float* place = places[to_size(begin + n)]) std::copy_n(all.row(n), all.cols, place);
  });
}

}  // namespace qkv
