#include "model/layers/embedding.h"

#include <cmath>

#include "ops/dropout.h"
#include "ops/embedding.h"

namespace qkv {

template <class Real>
Embedding<Real>::Embedding(ParameterList<Real>& list, const std::string& name, const Parameter<Real>* table,
                           const ModelConfig& config, bool zero_start, AddedTable added, DropoutSites& sites,
                           const PositionTables<Real>& positions)
    : table_(table),
      fixed_(positions.added()),
      scale_(config.scale_embeddings ? static_cast<Arithmetic<Real>>(std::sqrt(static_cast<double>(config.d_model)))
                                     : 1),
      zero_start_(zero_start),
      p_(config.dropout.residual),
      site_(sites.next()) {
  const int64_t e = config.input_width();
  if (config.positions == Positions::learned)
    learned_ = list.add(name + ".positions.weight", {config.max_length, e}, Init::gaussian(0.02));
  // Starts as zeros, so that a row that does not occur in training adds nothing.
  if (added.rows > 0) added_ = list.add(name + "." + added.name + ".weight", {added.rows, e}, Init::zeros());
  if (config.embedding_norm) norm_.emplace(list, name + ".embedding_norm", e, config);
  if (config.embedding_width > 0)
    projection_.emplace(list, LinearOutputs{{name + ".embedding_projection", config.d_model}}, e, true);
}

template <class Real>
Matrix<Real> Embedding<Real>::forward(std::span<const int32_t> ids, std::span<const int32_t> positions,
                                      std::span<const int32_t> added, Context& c, Saved& s) const {
  const Matrix<const Real> P = position_table();
  Matrix<Real> y = c.arena.matrix<Real>(static_cast<int64_t>(ids.size()), P.cols);
  const Probe::Part part(c.probe, "embedding");
  embed(ids, P, positions, y);
  if (zero_start_) set_first_tokens<Real>(positions, P.row(0), y);
  if (added_) add_embedding<Real>(added_->matrix(), added, y);
  c.probed("lookup", y);
  if (norm_) y = norm_->forward(y, c, s.norm);
  // The norm's backward needs only its input, so dropout may overwrite its result.
  if (c.dropout(p_, site_).active()) dropout<Real>(y, c.dropout(p_, site_), y);
  c.probed("dropout", y);
  if (projection_) {
    s.x = y;
    y = projection_->forward(y, c);
  }
  c.probed("state", y);
  return y;
}

template <class Real>
void Embedding<Real>::backward(Matrix<Real> gradient, std::span<const int32_t> ids, std::span<const int32_t> positions,
                               std::span<const int32_t> added, Context& c, const Saved& s) const {
  const Arena::Scope scope(c.arena);
  const Probe::Part part(c.probe, "embedding");
  if (projection_) {
    const Matrix<Real> dx = c.arena.matrix<Real>(s.x.rows, s.x.cols);
    projection_->backward(s.x, gradient, dx, c);
    gradient = dx;
  }
  if (c.dropout(p_, site_).active()) dropout<Real>(gradient, c.dropout(p_, site_), gradient);
  c.probed("dropout", gradient, Pass::backward);
  if (norm_) norm_->backward(gradient, c, s.norm);
  c.probed("lookup", gradient, Pass::backward);
  if (added_ && added_->gradient) embedding_backward<Real>(gradient, added, 1, added_->gradient_matrix());
  if (learned_ && learned_->gradient) embedding_backward<Real>(gradient, positions, 1, learned_->gradient_matrix());
  for (const Parameter<Real>* p : {added_, learned_})
    if (p && p->gradient) c.probed_gradient("lookup", p->gradient_matrix());
  if (!table_->gradient) return;
  if (zero_start_) set_first_tokens<Real>(positions, nullptr, gradient);
  embedding_backward<Real>(gradient, ids, scale_, table_->gradient_matrix());
  c.probed_gradient("lookup", table_->gradient_matrix());
}

template <class Real>
void Embedding<Real>::embed(std::span<const int32_t> ids, Matrix<const Real> P, std::span<const int32_t> positions,
                            Matrix<Real> y) const {
  if constexpr (std::is_same_v<Real, float>)
    if (table_->int8.values.data) return embedding(table_->int8, ids, scale_, P, positions, y);
  embedding<Real>(table_->matrix(), ids, scale_, P, positions, y);
}

QKV_FOR_ELEMENTS(template class Embedding);

}  // namespace qkv
