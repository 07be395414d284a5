#include "model/transformer.h"

#include "core/fail.h"
#include "core/float64.h"
#include "model/recompute.h"

namespace qkv {
namespace {

const ModelConfig& checked(const ModelConfig& config) {
  check(config);
  return config;
}

void check_side(const char* side, const Packed& packed, int64_t vocab, int64_t max_length) {
  for (const int32_t id : packed.ids)
    if (id < 0 || id >= vocab) fail("batch: {} id {} is outside the vocabulary of {}", side, id, vocab);
  for (const int32_t position : packed.positions)
    if (position < 0 || position >= max_length)
      fail("batch: a {} sequence is longer than the model's max_length of {}", side, max_length);
}

void check_gaps(const Packed& target, int64_t buckets) {
  const size_t wanted = buckets > 0 ? target.ids.size() : 0;
  if (target.gaps.size() != wanted)
    fail("batch: {} gaps for {} target tokens, wanted {}", target.gaps.size(), target.ids.size(), wanted);
  for (const int32_t gap : target.gaps)
    if (gap < 0 || gap >= buckets) fail("batch: gap {} is outside the {} buckets of the model", gap, buckets);
}

void check_labels(const Batch& batch, int64_t vocab) {
  if (batch.labels.size() != batch.target.ids.size())
    fail("batch: {} labels for {} target tokens", batch.labels.size(), batch.target.ids.size());
  for (const int32_t id : batch.labels)
    if (id < 0 || id >= vocab) fail("batch: label {} is outside the vocabulary of {}", id, vocab);
}

// Null for a side that is not there.
template <class Real>
const Parameter<Real>* declare_table(ParameterList<Real>& list, const std::string& name, int64_t vocab,
                                     const ModelConfig& config) {
  if (vocab == 0) return nullptr;
  const double deviation = 1 / std::sqrt(static_cast<double>(config.d_model));
  return list.add(name, {vocab, config.d_model}, Init::gaussian(deviation), true);
}

template <class Real>
Output<Real> make_output(ParameterList<Real>& list, const Parameter<Real>* target_table, const ModelConfig& config) {
  const Parameter<Real>* weight =
      config.tied_output ? target_table : declare_table(list, "output.weight", config.target_vocab, config);
  const Parameter<Real>* bias =
      config.output_bias ? list.add("output.bias", {config.target_vocab}, Init::zeros()) : nullptr;
  return {weight, bias};
}

bool encodes(const ModelConfig& config) { return config.encoder_layers > 0; }
bool decodes(const ModelConfig& config) { return config.decoder_layers > 0; }

template <class T, class... Args>
std::optional<T> make_if(bool wanted, Args&&... args) {
  if (!wanted) return std::optional<T>();
  return std::optional<T>(std::in_place, std::forward<Args>(args)...);
}

// Nothing of a layer but its result need be kept.
Context without_backward(Context c) {
  c.recompute = true;
  return c;
}

// A pass over the same batch that drops other elements.
Context another_pass(Context c) {
  c.seed += 0xD1B54A32D192ED03u;
  return c;
}

}  // namespace

int64_t count_parameters(const ModelConfig& c) {
  const int64_t d = c.d_model, Q = c.attention.heads * c.attention.key_width,
                V = c.attention.heads * c.attention.value_width;
  const int64_t KV = (c.attention.key_value_heads > 0 ? c.attention.key_value_heads : c.attention.heads) *
                     (c.attention.key_width + c.attention.value_width);
  const int64_t norm_vectors = c.norm.kind == NormKind::layer ? 2 : 1, norm = norm_vectors * d;
  const int64_t attention = (Q + KV) * (d + c.attention.input_bias) + d * (V + c.attention.output_bias) +
                            (c.attention.query_key_norm ? 2 * norm_vectors * c.attention.key_width : 0);
  const int64_t feed_forward = (c.gated_ffn ? 2 : 1) * c.ffn * (d + c.ffn_bias) + d * (c.ffn + c.ffn_bias);
  const int64_t layer_norms = c.sublayers == Sublayers::parallel_shared_norm ? 1 : 2;
  const int64_t encoder = attention + feed_forward + layer_norms * norm,
                decoder = encoder + (encodes(c) ? attention + norm : 0);
  const int64_t tables =
      c.source_vocab + (c.shared_embeddings ? 0 : c.target_vocab) + (c.tied_output ? 0 : c.target_vocab);
  const int64_t sides = encodes(c) + decodes(c);
  return (tables + c.item_features) * d + (c.output_bias ? c.target_vocab : 0) + c.encoder_layers * encoder +
         c.decoder_layers * decoder +
         sides * ((c.norm.final ? norm : 0) + (c.embedding_norm ? norm : 0) +
                  (c.positions == Positions::learned ? c.max_length * d : 0)) +
         c.gap_buckets * d;
}

Sequences sequences_of(const Packed& queries, const Packed& keys) {
  const int32_t *q = queries.offsets.data(), *k = keys.offsets.data();
  return {queries.sequences(), q, q + 1, k, k + 1};
}

template <class Real>
Transformer<Real>::Transformer(const ModelConfig& config)
    : config_(checked(config)),
      source_table_(declare_table(parameters_,
                                  config.shared_embeddings ? "embedding.weight" : "source_embedding.weight",
                                  config.source_vocab, config)),
      target_table_(config.shared_embeddings
                        ? source_table_
                        : declare_table(parameters_, "target_embedding.weight", config.target_vocab, config)),
      source_embedding_(
          make_if<Embedding<Real>>(encodes(config), parameters_, "encoder", source_table_, config, false, sites_)),
      target_embedding_(make_if<Embedding<Real>>(decodes(config), parameters_, "decoder", target_table_, config,
                                                 config.zero_start, sites_)),
      encoder_(make_if<Stack<Real>>(encodes(config), parameters_, "encoder", config.encoder_layers, config,
                                    StackKind{Causal::none, false}, sites_)),
      decoder_(make_if<Stack<Real>>(decodes(config), parameters_, "decoder", config.decoder_layers, config,
                                    StackKind{Causal::top_left, encodes(config)}, sites_)),
      output_(decodes(config) ? std::optional(make_output(parameters_, target_table_, config)) : std::nullopt),
      features_(config.item_features > 0 ? parameters_.add("item_features.weight",
                                                           {config.item_features, config.d_model}, Init::zeros(), true)
                                         : nullptr) {
  parameters_.allocate();
}

template <class Real>
void Transformer<Real>::forward(const Packed& source, const Packed& target, Context& c, Saved& s) const {
  check_side("source", source, config_.source_vocab, config_.max_length);
  check_side("target", target, config_.target_vocab, config_.max_length);
  check_gaps(target, config_.gap_buckets);
  if (!decoder_) fail("model: decoder_layers is 0, wanted a decoder: an encoder alone foretells nothing");
  const int64_t wanted = encoder_ ? target.sequences() : 0;
  if (source.sequences() != wanted)
    fail("batch: {} source sequences, wanted {}, one for each target", source.sequences(), wanted);

  if (encoder_) {
    const Matrix<Real> x = source_embedding_->forward(source.ids, source.positions, {}, c, s.source_embedding);
    c.positions = source.positions;
    s.memory = encoder_->forward(x, {}, sequences_of(source, source), {}, c, s.encoder);  // g = Encoder(x)
  }
  const Matrix<Real> y = target_embedding_->forward(target.ids, target.positions, target.gaps, c, s.target_embedding);
  c.positions = target.positions;
  s.h = decoder_->forward(y, s.memory, sequences_of(target, target), sequences_of(target, source), c,
                          s.decoder);  // h = Decoder(y, g)
}

template <class Real>
Loss Transformer<Real>::loss(const Batch& batch, double smoothing, Context& c) const {
  check_labels(batch, config_.target_vocab);
  const Arena::Scope scope(c.arena);
  Context lean = without_backward(c);
  Saved s;
  forward(batch.source, batch.target, lean, s);
  return output_->loss(s.h, batch.labels, smoothing, c);
}

template <class Real>
Loss Transformer<Real>::loss_and_gradient(const Batch& batch, Objective objective, Context& c) const {
  check_labels(batch, config_.target_vocab);
  const auto loss_of = [&](Matrix<const Real> h, Matrix<Real> dh) {
    if (objective.r_drop == 0) return output_->loss_and_gradient(h, batch.labels, objective.label_smoothing, dh, c);
    Context other = another_pass(c);
    Saved s;
    forward(batch.source, batch.target, other, s);
    const Matrix<Real> dother = c.arena.matrix<Real>(h.rows, h.cols);
    const Loss loss = output_->r_drop_and_gradient(h, s.h, batch.labels, objective, dh, dother, c);
    backward(batch, dother, other, s);
    return loss;
  };
  return loss_and_gradient(batch, loss_of, c);
}

template <class Real>
Loss Transformer<Real>::loss_and_gradient(const Batch& batch, LossOf loss_of, Context& c) const {
  const Arena::Scope scope(c.arena);
  Saved s;
  forward(batch.source, batch.target, c, s);
  const Matrix<Real> dh = c.arena.matrix<Real>(s.h.rows, s.h.cols);
  const Loss loss = loss_of(s.h, dh);
  backward(batch, dh, c, s);
  return loss;
}

// dh is overwritten.
template <class Real>
void Transformer<Real>::backward(const Batch& batch, Matrix<Real> dh, Context& c, Saved& s) const {
  const Matrix<Real> dmemory = c.arena.zeros<Real>(s.memory.rows, s.memory.cols);
  decoder_->backward(dh, dmemory, sequences_of(batch.target, batch.target), sequences_of(batch.target, batch.source), c,
                     s.decoder);
  target_embedding_->backward(dh, batch.target.ids, batch.target.positions, batch.target.gaps, c, s.target_embedding);
  if (encoder_) {
    c.positions = batch.source.positions;
    encoder_->backward(dmemory, {}, sequences_of(batch.source, batch.source), {}, c, s.encoder);
    source_embedding_->backward(dmemory, batch.source.ids, batch.source.positions, {}, c, s.source_embedding);
  }
}

template <class Real>
Matrix<Real> Transformer<Real>::last_hidden(const Packed& target, Context& c) const {
  if (encoder_) fail("model: encoder_layers is {}, wanted a decoder-only model", config_.encoder_layers);
  check_side("target", target, config_.target_vocab, config_.max_length);
  check_gaps(target, config_.gap_buckets);
  for (int64_t s = 0; s < target.sequences(); s++)
    if (target.offsets[static_cast<size_t>(s)] == target.offsets[static_cast<size_t>(s) + 1])
      fail("batch: target sequence {} has no tokens", s);
  typename Embedding<Real>::Saved embedding;
  const Matrix<Real> x = target_embedding_->forward(target.ids, target.positions, target.gaps, c, embedding);
  c.positions = target.positions;
  return decoder_->last(x, sequences_of(target, target), c);
}

template <class Real>
Matrix<Real> Transformer<Real>::encode(const Packed& source, Context& c) const {
  check_side("source", source, config_.source_vocab, config_.max_length);
  Context lean = without_backward(c);
  typename Embedding<Real>::Saved embedding;
  typename Stack<Real>::Saved s;
  const Matrix<Real> x = source_embedding_->forward(source.ids, source.positions, {}, lean, embedding);
  lean.positions = source.positions;
  return result_alone<Real>(x, lean,
                            [&] { return encoder_->forward(x, {}, sequences_of(source, source), {}, lean, s); });
}

template <class Real>
Matrix<Real> Transformer<Real>::hidden(const Packed& texts, Context& c) const {
  if (encoder_) return encode(texts, c);
  Context lean = without_backward(c);
  Saved s;
  forward({}, texts, lean, s);
  return s.h;
}

template <class Real>
void Transformer<Real>::fill_cross(Matrix<const Real> memory, const std::vector<typename Layer<Real>::Cache>& caches,
                                   Context& c) const {
  for (size_t i = 0; i < caches.size(); i++)
    decoder_->layers()[i].cross_attention().keys_values(memory, caches[i].cross, c);
}

template <class Real>
Matrix<Real> Transformer<Real>::step(const Step& s, const std::vector<typename Layer<Real>::Cache>& caches,
                                     Context& c) const {
  if (config_.gap_buckets > 0) fail("model: gap_buckets is {}, wanted 0 to decode token by token", config_.gap_buckets);
  typename Embedding<Real>::Saved embedding;
  const Matrix<Real> x = target_embedding_->forward(s.ids, s.positions, {}, c, embedding);
  c.positions = s.positions;
  return decoder_->step(x, s.self, s.cross, caches, s.new_rows, c);
}

template class Transformer<float>;
QKV_FLOAT64(template class Transformer<double>;)

}  // namespace qkv
