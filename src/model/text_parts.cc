#include "model/text_parts.h"

#include "core/to_size.h"
#include "model/batch_slice.h"
#include "model/layers/probe.h"
#include "ops/rows.h"

namespace qkv {

template <class Real>
void TextParts<Real>::cut(const Batch& batch, int64_t part_tokens) {
  const Packed& texts = batch.labelled();
  parts_.assign(1, 0);
  for (int64_t s = 1; s < texts.sequences(); s++) {
    const int32_t first = texts.offsets[to_size(parts_.back())], end = texts.offsets[to_size(s) + 1];
    if (end - first > part_tokens) parts_.push_back(s);
  }
  parts_.push_back(texts.sequences());
}

// Copies a part of the batch. Returns its context, whose dropout masks are its own.
template <class Real>
Context TextParts<Real>::begin_part(const Batch& batch, size_t part, const Context& c) {
  copy_sequences(batch, parts_[part], parts_[part + 1], part_);
  Context own = c;
  own.seed = c.seed + static_cast<uint64_t>(part + 1) * 0x9E3779B97F4A7C15u;
  return own;
}

template <class Real>
void TextParts<Real>::outputs(const Transformer<Real>& model, const Batch& batch, int64_t part_tokens, Context& c,
                              Matrix<Real> v) {
  cut(batch, part_tokens);
  part_outputs(model, batch, c, v);
}

template <class Real>
void TextParts<Real>::part_outputs(const Transformer<Real>& model, const Batch& batch, Context& c, Matrix<Real> v) {
  for (size_t part = 0; part + 1 < parts_.size(); part++) {
    const Arena::Scope scope(c.arena);
    Context own = begin_part(batch, part, c);
    own.probe = nullptr;  // a second pass computes the same
    copy_rows<Real>(model.text_outputs(part_, own), v.row_range(parts_[part], parts_[part + 1]));
  }
}

template <class Real>
Loss TextParts<Real>::loss_and_gradient(const Transformer<Real>& model, const Batch& batch,
                                        typename Transformer<Real>::LossOf loss_of, int64_t part_tokens, Context& c) {
  cut(batch, part_tokens);
  const size_t parts = parts_.size() - 1;
  if (parts == 1 || !model.text_head()) return model.text_loss_and_gradient(batch, loss_of, c);
  const Arena::Scope scope(c.arena);
  const Matrix<Real> v = c.arena.matrix<Real>(parts_.back(), model.text_head()->width());
  const Matrix<Real> dv = c.arena.matrix<Real>(v.rows, v.cols);
  part_outputs(model, batch, c, v);
  const Loss loss = loss_of(v, dv);
  for (size_t part = 0; part < parts; part++) {
    const Packed& texts = batch.labelled();
    const int32_t first = texts.offsets[to_size(parts_[part])];
    Context own = begin_part(batch, part, c);
    const std::unique_ptr<Probe> probe = c.probe ? c.probe->of_part() : nullptr;
    own.probe = probe.get();
    if (part + 1 < parts) own.on_complete = {};
    const auto of_part = [&](Matrix<const Real>, Matrix<Real> dpart) {
      copy_rows<Real>(dv.row_range(parts_[part], parts_[part + 1]), dpart);
      return Loss();
    };
    model.text_loss_and_gradient(part_, of_part, own);
    if (probe) c.probe->take(*probe, first, first);
  }
  return loss;
}

template class TextParts<float>;
template class TextParts<double>;

}  // namespace qkv
