// Models with each kind of text head, and texts for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/to_size.h"
#include "model/transformer.h"
#include "tests/support/models.h"

namespace qkv::testing {

// Texts of these numbers of tokens, for an encoder with the types of pairs, or for a decoder alone.
inline Batch random_texts(const ModelConfig& config, const std::vector<int64_t>& lengths, uint64_t seed = 5) {
  Random random(seed, Stream::test);
  Batch batch;
  Packed& texts = config.has_encoder() ? batch.source : batch.target;
  for (const int64_t length : lengths) texts.append(random_tokens(length, 13, random));
  for (int64_t n = 0; config.token_types > 0 && n < texts.tokens(); n++)
    texts.types.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(config.token_types))));
  return batch;
}

inline ModelConfig text_encoder_config() {
  ModelConfig c = small_config();
  c.target_vocab = c.decoder_layers = 0;
  c.shared_embeddings = false;
  c.token_types = 2;
  c.token_head = TokenHead::none;
  c.tied_output = false;
  c.positions = Positions::learned;
  c.activation = Activation::gelu;
  c.dropout.residual = 0.2;
  c.dropout.attention = c.dropout.ffn = 0.1;
  return c;
}

inline ModelConfig text_decoder_config() {
  ModelConfig c = small_config();
  c.source_vocab = c.encoder_layers = 0;
  c.shared_embeddings = false;
  c.dropout.residual = 0.2;
  return c;
}

struct TextHeadCase {
  std::string name;
  ModelConfig config;
  TextHeadConfig head;
};

inline std::vector<TextHeadCase> text_head_cases() {
  using Kind = TextHeadConfig::Kind;
  const ModelConfig encoder = text_encoder_config(), decoder = text_decoder_config();
  ModelConfig rms = encoder;
  rms.norm.kind = NormKind::rms;
  std::vector<TextHeadCase> cases = {
      {"last token of a decoder", decoder, {.kind = Kind::vectors, .pooling = Pooling::last}},
      {"dense layers with a temperature",
       encoder,
       {.kind = Kind::vectors,
        .dense = {{DenseActivation::tanh, 6, 8}, {DenseActivation::gelu, 8, 5, false}, {DenseActivation::silu, 5, 4}},
        .temperature = true}},
      {"one dense layer", decoder, {.kind = Kind::vectors, .dense = {{DenseActivation::sigmoid, 6, 3}}}},
      {"labels", encoder, {.kind = Kind::labels, .pooling = Pooling::first, .labels = {3}, .dropout = 0.3}},
      {"labels, gelu, a norm",
       encoder,
       {.kind = Kind::labels, .labels = {1, HeadActivation::gelu, false, true}, .dropout = 0.1}},
      {"labels, RMSNorm", rms, {.kind = Kind::labels, .labels = {2, HeadActivation::tanh, true, true}}},
      {"labels, relu", encoder, {.kind = Kind::labels, .labels = {2, HeadActivation::relu}}},
      {"labels of a decoder", decoder, {.kind = Kind::labels, .pooling = Pooling::last, .labels = {4}, .dropout = 0.2}},
  };
  for (const Pooling pooling :
       {Pooling::mean, Pooling::first, Pooling::last, Pooling::max, Pooling::mean_sqrt_len, Pooling::weighted_mean})
    cases.push_back(
        {"pooling " + std::to_string(static_cast<int>(pooling)), encoder, {.kind = Kind::vectors, .pooling = pooling}});
  return cases;
}

// Σ (0.7 v² + a v) with a different a for each element. Adds the gradient of e^s Σ v for a temperature s.
template <class Real>
class CurvedLoss {
 public:
  explicit CurvedLoss(const Transformer<Real>& model) : temperature_(model.text_head()->temperature()) {}

  Loss operator()(Matrix<const Real> v, Matrix<Real> dv) const {
    calls++;
    const double factor = temperature_ ? std::exp(static_cast<double>(temperature_->value[0])) : 0;
    double sum = 0, loss = 0;
    for (int64_t n = 0; n < v.rows; n++)
      for (int64_t i = 0; i < v.cols; i++) {
        const double x = static_cast<double>(v(n, i)), a = 0.3 * static_cast<double>((3 * n + i) % 7) - 0.8;
        loss += 0.7 * x * x + a * x;
        sum += x;
        if (dv.data) dv(n, i) = static_cast<Real>(1.4 * x + a + factor);
      }
    if (dv.data && temperature_) temperature_->gradient[0] += static_cast<Real>(factor * sum);
    return {loss + factor * sum, loss, v.rows};
  }

  mutable int calls = 0;

 private:
  const Parameter<Real>* temperature_;
};

// Weights near the initial ones; a temperature of about 1, so that its gradient does not hide the others.
template <class Real>
void randomize_with_head(Transformer<Real>& model, uint64_t seed) {
  randomize(model.parameters(), seed);
  if (const auto* s = model.text_head()->temperature()) s->value[0] = Real(0.25);
}

}  // namespace qkv::testing
