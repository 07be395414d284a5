// Recall over a distance: the first token of a sequence has to be named at its end, after a number of random tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "model/layers/context.h"
#include "model/layers/output.h"
#include "model/transformer.h"
#include "program/experiments/gated_recurrent.h"

namespace qkv {

// Sequences of distance + 1 tokens: one of kRecallSymbols symbols, random tokens, and a token that asks for the symbol.
inline constexpr int32_t kRecallSymbols = 8, kRecallVocab = 2 * kRecallSymbols + 1;
struct RecallTexts {
  int64_t distance = 0;
  Packed text;
  std::vector<int32_t> labels;  // the symbol of each sequence
};
RecallTexts recall_texts(int64_t texts, int64_t distance, uint64_t seed, uint64_t index);

// A Transformer with one layer that predicts the symbol from the last token.
class RecallTransformer {
 public:
  RecallTransformer(int64_t d_model, int64_t distance);

  ParameterList<float>& parameters() { return model_.parameters(); }
  Loss loss_and_gradient(const RecallTexts& texts, Objective objective, Context& c) const;
  double accuracy(const RecallTexts& texts) const;

 private:
  Transformer<float> model_;
};

// The same with a gated recurrent network instead of the layer.
class RecallRecurrent {
 public:
  RecallRecurrent(int64_t d_model, int64_t width);

  ParameterList<float>& parameters() { return list_; }
  Loss loss_and_gradient(const RecallTexts& texts, Objective objective, Context& c) const;
  double accuracy(const RecallTexts& texts) const;

 private:
  struct Saved {
    std::vector<int32_t> ids;  // by time
    GatedRecurrent<float>::Saved layer;
    Matrix<float> last;  // [B, h]
  };
  // Returns the logits, [B, V].
  Matrix<float> forward(const RecallTexts& texts, Context& c, Saved& s) const;

  ParameterList<float> list_;
  const Parameter<float>* table_;  // [V, d]
  GatedRecurrent<float> layer_;
  Linear<float> output_;
};

}  // namespace qkv
