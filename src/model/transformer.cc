#include "model/transformer.h"

#include <algorithm>
#include <cmath>

#include "core/device.h"
#include "core/fail.h"
#include "core/to_size.h"
#include "model/recompute.h"
#include "ops/rows.h"

namespace qkv {
namespace {

template <class Real>
const ModelConfig& checked(const ModelConfig& config, const ItemInputs& items, const TextHeadConfig& head) {
  check(config, items);
  check(head, config);
  if (kOnDevice<Real> && head.kind != TextHeadConfig::Kind::none) fail("text head: is computed on the cpu alone");
  return config;
}

void check_side(const char* side, const Packed& packed, int64_t vocab, int64_t max_length) {
  for (const int32_t id : packed.ids)
    if (id < 0 || id >= vocab) fail("batch: {} id must be from 0 to {} (is {})", side, vocab - 1, id);
  for (const int32_t position : packed.positions)
    if (position < 0 || position >= max_length)
      fail("batch: a {} sequence is longer than max_length ({})", side, max_length);
}

void check_gaps(const Packed& target, int64_t buckets) {
  const size_t expected = buckets > 0 ? target.ids.size() : 0;
  if (target.gaps.size() != expected)
    fail("batch: expected {} gaps for {} target tokens, found {}", expected, target.ids.size(), target.gaps.size());
  for (const int32_t gap : target.gaps)
    if (gap < 0 || gap >= buckets) fail("batch: gap must be from 0 to {} (is {})", buckets - 1, gap);
}

void check_types(const Packed& source, int64_t types) {
  if (!source.types.empty() && source.types.size() != source.ids.size())
    fail("batch: expected {} types for {} source tokens, found {}", source.ids.size(), source.ids.size(),
         source.types.size());
  for (const int32_t type : source.types)
    if (type < 0 || type >= std::max<int64_t>(types, 1))
      fail("batch: type must be from 0 to {} (is {})", std::max<int64_t>(types, 1) - 1, type);
}

// Returns the types of the tokens for a table of them, or nothing without a table.
std::span<const int32_t> types_of(const Packed& source, int64_t types, Arena& arena) {
  if (types == 0) return {};
  if (!source.types.empty()) return source.types;
  const std::span<int32_t> zeros(arena.take<int32_t>(source.tokens()), to_size(source.tokens()));
  std::ranges::fill(zeros, 0);
  return zeros;
}

template <class Real>
Uploaded<Real> upload(const Batch& batch) {
  const Packed &source = batch.source, &target = batch.target;
  return Uploaded<Real>({source.ids, source.offsets, source.positions, source.types, target.ids, target.offsets,
                         target.positions, target.gaps, batch.labels, batch.masked});
}

void check_labels(const Batch& batch, const ModelConfig& config) {
  const size_t expected = config.has_decoder() ? batch.target.ids.size() : batch.masked.size();
  if (batch.labels.size() != expected)
    fail("batch: expected {} labels, one for each {} token, found {}", expected,
         config.has_decoder() ? "target" : "masked", batch.labels.size());
  const int64_t vocab = config.output_vocab();
  for (const int32_t id : batch.labels)
    if (id < 0 || id >= vocab) fail("batch: label must be from 0 to {} (is {})", vocab - 1, id);
  int64_t next = 0;  // the first token that may be masked
  for (const int32_t token : batch.masked) {
    if (token < next || token >= batch.source.tokens())
      fail("batch: masked tokens must increase and be below {} (one is {})", batch.source.tokens(), token);
    next = token + 1;
  }
}

// Returns null for a missing side, whose vocabulary is 0.
template <class Real>
const Parameter<Real>* declare_table(ParameterList<Real>& list, const std::string& name, int64_t vocab,
                                     const ModelConfig& config) {
  if (vocab == 0) return nullptr;
  const int64_t width = name == "output.weight" ? config.d_model : config.input_width();
  const double deviation = 1 / std::sqrt(static_cast<double>(width));
  return list.add(name, {vocab, width}, Init::gaussian(deviation), 8);
}

template <class Real>
Output<Real> make_output(ParameterList<Real>& list, const Parameter<Real>* table, const ModelConfig& config) {
  const int64_t vocab = config.output_vocab();
  const Parameter<Real>* weight = config.tied_output ? table : declare_table(list, "output.weight", vocab, config);
  const Parameter<Real>* bias = config.output_bias ? list.add("output.bias", {vocab}, Init::zeros()) : nullptr;
  return {weight, bias, static_cast<Arithmetic<Real>>(config.output_softcap)};
}

template <class Real>
std::optional<TextHead<Real>> make_text_head(ParameterList<Real>& list, const ModelConfig& model,
                                             const TextHeadConfig& config, DropoutSites sites) {
  if constexpr (!kOnDevice<Real>)
    if (config.kind != TextHeadConfig::Kind::none)
      return std::optional<TextHead<Real>>(std::in_place, list, model, config, sites);
  return std::nullopt;
}

template <class T, class... Args>
std::optional<T> make_if(bool condition, Args&&... args) {
  if (!condition) return std::optional<T>();
  return std::optional<T>(std::in_place, std::forward<Args>(args)...);
}

// Without a backward pass, only the results of layers are kept.
Context without_backward(Context c) {
  c.recompute = true;
  return c;
}

// A second pass over the same batch with other dropout masks.
Context another_pass(Context c) {
  c.seed += 0xD1B54A32D192ED03u;
  c.on_complete = {};
  return c;
}

}  // namespace

int64_t count_parameters(const ModelConfig& c, const ItemInputs& items) {
  const int64_t d = c.d_model, Q = c.attention.heads * c.attention.key_width,
                V = c.attention.heads * c.attention.value_width;
  const int64_t KV = c.key_value_heads() * (c.attention.key_width + c.attention.value_width);
  const int64_t norm_vectors = c.norm.kind == NormKind::layer ? 2 : 1, norm = norm_vectors * d;
  const int64_t query_key_norms = c.attention.query_key_norm_over_heads ? c.attention.heads + c.key_value_heads() : 2;
  const int64_t attention = (Q + KV) * (d + c.attention.input_bias) + d * (V + c.attention.output_bias) +
                            (c.attention.query_key_norm ? norm_vectors * query_key_norms * c.attention.key_width : 0);
  const int64_t feed_forward = (c.gated_ffn ? 2 : 1) * c.ffn * (d + c.ffn_bias) + d * (c.ffn + c.ffn_bias);
  const int64_t branch_norms = c.norm.position == NormPosition::sandwich ? 2 : 1;  // of a sublayer
  const int64_t layer_norms = (c.sublayers == Sublayers::parallel_shared_norm ? 1 : 2) * branch_norms;
  const int64_t encoder = attention + feed_forward + layer_norms * norm,
                decoder = encoder + (c.has_encoder() ? attention + branch_norms * norm : 0);
  const int64_t e = c.input_width();
  const int64_t embeddings = c.source_vocab + (c.shared_embeddings ? 0 : c.target_vocab) + c.token_types;
  const int64_t outputs = c.tied_output ? 0 : c.output_vocab(), h = width_of_head(c);
  const int64_t head = c.token_head == TokenHead::dense ? h * (d + c.ffn_bias + norm_vectors) : 0;
  const int64_t sides = c.has_encoder() + c.has_decoder();
  const auto declared = [&](int64_t layers) { return c.shared_layers ? std::min<int64_t>(layers, 1) : layers; };
  return embeddings * e + (outputs + items.features) * d + (c.output_bias ? c.output_vocab() : 0) + head +
         declared(c.encoder_layers) * encoder + declared(c.decoder_layers) * decoder +
         sides * ((c.norm.final ? norm : 0) - (c.norm.first ? 0 : norm) + (c.embedding_norm ? norm_vectors * e : 0) +
                  (c.positions == Positions::learned ? c.max_length * e : 0) +
                  (c.embedding_width > 0 ? d * (e + 1) : 0) + c.attention.relative_buckets * c.attention.heads) +
         items.gap_buckets * d;
}

Sequences sequences_of(const Packed& queries, const Packed& keys) {
  const int32_t *q = queries.offsets.data(), *k = keys.offsets.data();
  return {queries.sequences(), q, q + 1, k, k + 1};
}

template <class Real>
Transformer<Real>::Transformer(const ModelConfig& config, const ItemInputs& items, const TextHeadConfig& head,
                               std::shared_ptr<const PositionTables<Real>> positions)
    : config_(checked<Real>(config, items, head)),
      items_(items),
      positions_(positions ? std::move(positions) : std::make_shared<PositionTables<Real>>(config)),
      source_table_(declare_table(parameters_,
                                  config.shared_embeddings ? "embedding.weight" : "source_embedding.weight",
                                  config.source_vocab, config)),
      target_table_(config.shared_embeddings
                        ? source_table_
                        : declare_table(parameters_, "target_embedding.weight", config.target_vocab, config)),
      source_embedding_(make_if<Embedding<Real>>(config.has_encoder(), parameters_, "encoder", source_table_, config,
                                                 false, AddedTable{"types", config.token_types}, sites_, *positions_)),
      target_embedding_(make_if<Embedding<Real>>(config.has_decoder(), parameters_, "decoder", target_table_, config,
                                                 config.zero_start, AddedTable{"gaps", items.gap_buckets}, sites_,
                                                 *positions_)),
      encoder_(make_if<Stack<Real>>(config.has_encoder(), parameters_, "encoder", config.encoder_layers, config,
                                    StackKind{Causal::none, false}, sites_, positions_.get())),
      decoder_(make_if<Stack<Real>>(config.has_decoder(), parameters_, "decoder", config.decoder_layers, config,
                                    StackKind{Causal::top_left, config.has_encoder()}, sites_, positions_.get())),
      head_(make_if<HeadTransform<Real>>(config.token_head == TokenHead::dense, parameters_, "head", config)),
      output_(config.has_output()
                  ? std::optional(make_output(parameters_, target_table_ ? target_table_ : source_table_, config))
                  : std::nullopt),
      features_(items.features > 0
                    ? parameters_.add("item_features.weight", {items.features, config.d_model}, Init::zeros(), 8)
                    : nullptr),
      trunk_parameters_(std::ssize(parameters_.all())),
      text_head_(make_text_head<Real>(head.apart ? adapters_ : parameters_, config, head, sites_)) {
  head_end_ = std::ssize(head_parameters().list.all());
  parameters_.allocate();
}

template <class Real>
std::unique_ptr<Transformer<Real>> Transformer<Real>::make_replica() const {
  return std::unique_ptr<Transformer>(
      new Transformer(config_, items_, text_head_ ? text_head_->config() : TextHeadConfig(), positions_));
}

template <class Real>
typename Transformer<Real>::HeadParameters Transformer<Real>::head_parameters() const {
  const bool is_apart = text_head_ && text_head_->config().apart;
  return {is_apart ? adapters_ : parameters_, is_apart ? 0 : trunk_parameters_, head_end_};
}

template <class Real>
void Transformer<Real>::add_adapters(const std::vector<Adapter>& adapters, int64_t rank, double scale) {
  const auto& all = parameters_.all();
  for (const Adapter& adapter : adapters) {
    const auto first = std::ranges::find(all, adapter.parameters.front(), &Parameter<Real>::name);
    const size_t begin = static_cast<size_t>(first - all.begin());
    int64_t outputs = 0;
    for (size_t i = 0; i < adapter.parameters.size(); i++) {
      const bool fits = begin + i < all.size() && all[begin + i].name == adapter.parameters[i] &&
                        all[begin + i].shape.size() == 2 && (i == 0 || all[begin + i].joined);
      if (!fits) fail("adapter {}: the model has no such weight: {}", adapter.name, adapter.parameters[i]);
      outputs += all[begin + i].shape[0];
    }
    const int64_t in = first->shape[1];
    const Init kaiming{0, 1 / std::sqrt(static_cast<double>(in)), 0};  // Kaiming's uniform with a = √5, as in PEFT
    const auto* A = adapters_.add(adapter.name + ".lora_A.weight", {rank, in}, kaiming);
    const auto* B = adapters_.add(adapter.name + ".lora_B.weight", {outputs, rank}, Init::zeros());
    parameters_.add_update(begin, {0, outputs, A, B, static_cast<Arithmetic<Real>>(scale)});
  }
  parameters_.freeze([](const Parameter<Real>&) { return true; });
  adapters_.allocate();
}

template <class Real>
void Transformer<Real>::encode(const Packed& source, Context& c, Saved& s) const {
  check_side("source", source, config_.source_vocab, config_.max_length);
  check_types(source, config_.token_types);
  c.use(encoder_->first_parameter());
  const Probe::Part part(c.probe, "encoder", TokenSide::source);
  const Matrix<Real> x = source_embedding_->forward(
      source.ids, source.positions, types_of(source, config_.token_types, c.arena), c, s.source_embedding);
  c.positions = source.positions;
  s.memory = encoder_->forward(x, {}, sequences_of(source, source), {}, c, s.encoder);  // g = Encoder(x)
}

template <class Real>
void Transformer<Real>::forward(const Packed& source, const Packed& target, Context& c, Saved& s) const {
  check_side("source", source, config_.source_vocab, config_.max_length);
  check_side("target", target, config_.target_vocab, config_.max_length);
  check_gaps(target, items_.gap_buckets);
  check_types(source, config_.token_types);
  if (!decoder_) {
    if (target.sequences() > 0) fail("batch: an encoder has no target (found {} sequences)", target.sequences());
    encode(source, c, s);
    s.h = s.memory;
    return;
  }
  const int64_t expected = encoder_ ? target.sequences() : 0;
  if (source.sequences() != expected)
    fail("batch: expected {} source sequences for {} target sequences, found {}", expected, target.sequences(),
         source.sequences());

  if (encoder_)
    encode(source, c, s);
  else
    c.use(decoder_->first_parameter());
  const Probe::Part part(c.probe, "decoder", TokenSide::target);
  const Matrix<Real> y = target_embedding_->forward(target.ids, target.positions, target.gaps, c, s.target_embedding);
  c.positions = target.positions;
  s.h = decoder_->forward(y, s.memory, sequences_of(target, target), sequences_of(target, source), c,
                          s.decoder);  // h = Decoder(y, g)
}

template <class Real>
void Transformer<Real>::check_predicts(const Batch& batch) const {
  if (!output_) fail("model: an encoder predicts no tokens without a head (token_head is none)");
  check_labels(batch, config_);
}

template <class Real>
Loss Transformer<Real>::loss(const Batch& batch, double smoothing, Context& c) const {
  check_predicts(batch);
  const Arena::Scope scope(c.arena);
  [[maybe_unused]] const auto uploaded = upload<Real>(batch);
  Context lean = without_backward(c);
  Saved s;
  forward(batch.source, batch.target, lean, s);
  if (decoder_) return output_->loss(s.h, batch.labels, smoothing, c);
  return masked_loss<Real>(masked_output(), s.h, batch, smoothing, c);
}

template <class Real>
Loss Transformer<Real>::loss_and_gradient(const Batch& batch, Objective objective, Context& c) const {
  check_predicts(batch);
  if (!decoder_ && objective.r_drop > 0) fail("model: r_drop must be 0 for an encoder (is {})", objective.r_drop);
  const auto loss_of = [&](Matrix<const Real> h, Matrix<Real> dh) {
    if (!decoder_) return masked_loss_and_gradient<Real>(masked_output(), h, batch, objective.label_smoothing, dh, c);
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
  [[maybe_unused]] const auto uploaded = upload<Real>(batch);
  Saved s;
  forward(batch.source, batch.target, c, s);
  const Matrix<Real> dh = c.arena.matrix<Real>(s.h.rows, s.h.cols);
  c.use(std::ssize(parameters_.all()));
  const Loss loss = loss_of(s.h, dh);
  backward(batch, dh, c, s);
  return loss;
}

template <class Real>
const Packed& Transformer<Real>::checked_texts(const Batch& batch) const {
  if (!text_head_) fail("model: has no text head");
  const Packed& texts = encoder_ ? batch.source : batch.target;
  for (int64_t s = 0; s < texts.sequences(); s++)
    if (texts.sequence(s).empty()) fail("batch: text {} has no tokens", s);
  return texts;
}

template <class Real>
Matrix<Real> Transformer<Real>::text_outputs(const Batch& batch, Context& c) const {
  const Packed& texts = checked_texts(batch);
  const Matrix<Real> v = c.arena.matrix<Real>(texts.sequences(), text_head_->width());
  if constexpr (!kOnDevice<Real>) {
    const Arena::Scope scope(c.arena);
    Context lean = without_backward(c);
    Saved s;
    forward(batch.source, batch.target, lean, s);
    lean.use(std::ssize(parameters_.all()));
    const Probe::Part part(c.probe, "head", TokenSide::none);
    typename TextHead<Real>::Saved saved;
    copy_rows<Real>(text_head_->forward(s.h, texts.offsets, lean, saved), v);
  }
  return v;
}

template <class Real>
Loss Transformer<Real>::text_loss_and_gradient(const Batch& batch, LossOf loss_of, Context& c) const {
  const Packed& texts = checked_texts(batch);
  const auto of_hidden = [&](Matrix<const Real> h, Matrix<Real> dh) {
    Loss loss;
    if constexpr (!kOnDevice<Real>) {
      const Probe::Part part(c.probe, "head", TokenSide::none);
      typename TextHead<Real>::Saved saved;
      const Matrix<Real> v = text_head_->forward(h, texts.offsets, c, saved);
      const Matrix<Real> dv = c.arena.matrix<Real>(v.rows, v.cols);
      loss = loss_of(v, dv);
      text_head_->backward(dv, dh, c, saved);
    }
    return loss;
  };
  return loss_and_gradient(batch, of_hidden, c);
}

// Overwrites dh.
template <class Real>
void Transformer<Real>::backward(const Batch& batch, Matrix<Real> dh, Context& c, Saved& s) const {
  const Matrix<Real> dmemory = decoder_ ? zeros<Real>(c.arena, s.memory.rows, s.memory.cols) : dh;
  if (decoder_) {
    const Probe::Part part(c.probe, "decoder", TokenSide::target);
    decoder_->backward(dh, dmemory, sequences_of(batch.target, batch.target), sequences_of(batch.target, batch.source),
                       c, s.decoder);
    target_embedding_->backward(dh, batch.target.ids, batch.target.positions, batch.target.gaps, c, s.target_embedding);
  }
  if (encoder_) {
    const Probe::Part part(c.probe, "encoder", TokenSide::source);
    c.positions = batch.source.positions;
    encoder_->backward(dmemory, {}, sequences_of(batch.source, batch.source), {}, c, s.encoder);
    source_embedding_->backward(dmemory, batch.source.ids, batch.source.positions,
                                types_of(batch.source, config_.token_types, c.arena), c, s.source_embedding);
  }
}

template <class Real>
Matrix<Real> Transformer<Real>::last_hidden(const Packed& target, Context& c) const {
  if (!config_.is_decoder_only()) fail("model: must be decoder-only (encoder_layers is {})", config_.encoder_layers);
  check_side("target", target, config_.target_vocab, config_.max_length);
  check_gaps(target, items_.gap_buckets);
  for (int64_t s = 0; s < target.sequences(); s++)
    if (target.offsets[to_size(s)] == target.offsets[to_size(s) + 1])
      fail("batch: target sequence {} has no tokens", s);
  typename Embedding<Real>::Saved embedding;
  const Matrix<Real> x = target_embedding_->forward(target.ids, target.positions, target.gaps, c, embedding);
  c.positions = target.positions;
  return decoder_->last(x, sequences_of(target, target), c);
}

template <class Real>
Matrix<Real> Transformer<Real>::encode(const Packed& source, Context& c) const {
  check_side("source", source, config_.source_vocab, config_.max_length);
  check_types(source, config_.token_types);
  Context lean = without_backward(c);
  typename Embedding<Real>::Saved embedding;
  typename Stack<Real>::Saved s;
  const Matrix<Real> x = source_embedding_->forward(source.ids, source.positions,
                                                    types_of(source, config_.token_types, c.arena), lean, embedding);
  lean.positions = source.positions;
  return result_only<Real>(x, lean,
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
Matrix<const Real> Transformer<Real>::hidden(const Packed& texts, int64_t layer, Context& c) const {
  const int64_t layers = encoder_ ? config_.encoder_layers : config_.decoder_layers;
  if (layer < 0 || layer > layers) fail("layer must be between 0 and {} (is {})", layers, layer);
  Context lean = without_backward(c);
  Saved s;
  if (encoder_)
    encode(texts, lean, s);
  else
    forward({}, texts, lean, s);
  if (layer == layers) return encoder_ ? s.memory : s.h;
  return (encoder_ ? s.encoder : s.decoder).inputs[to_size(layer)];
}

template <class Real>
void Transformer<Real>::fill_cross(Matrix<const Real> memory, const std::vector<typename Layer<Real>::Cache>& caches,
                                   Context& c) const {
  for (size_t i = 0; i < caches.size(); i++)
    decoder_->layers()[i].cross_attention().keys_values(memory, caches[i].cross, c);
}

template <class Real>
Matrix<Real> Transformer<Real>::step(const DecodingStep& s, const std::vector<typename Layer<Real>::Cache>& caches,
                                     Context& c) const {
  if (items_.gap_buckets > 0) fail("model: gap_buckets must be 0 to decode token by token (is {})", items_.gap_buckets);
  typename Embedding<Real>::Saved embedding;
  const Matrix<Real> x = target_embedding_->forward(s.ids, s.positions, {}, c, embedding);
  c.positions = s.positions;
  return decoder_->step(x, s.self, s.cross, caches, s.new_rows, c);
}

QKV_FOR_ELEMENTS(template class Transformer);

}  // namespace qkv
