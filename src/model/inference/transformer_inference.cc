#include "model/inference/transformer_inference.h"

#include <cstdint>

#include "core/device.h"
#include "core/to_size.h"
#include "device/accelerator.h"
#include "device/copies.h"
#include "ops/next_tokens.h"
#include "ops/rows.h"
#include "qkv/system.h"

namespace qkv {
namespace {

// Commands of one call on a device do not mix with those of others.
template <class Real>
struct OneAtATime {};
template <class T>
struct OneAtATime<Device<T>> : Accelerator::Exclusive {};

// Copies the integers of texts to a device once, for all layers.
template <class Real>
Uploaded<Real> upload(const Packed& texts) {
  return Uploaded<Real>({texts.ids, texts.positions, texts.offsets, texts.gaps, texts.types});
}

// Returns the rows that compute() returns, [rows, cols], on the host.
template <class Real, class F>
Matrix<float> on_host(int64_t rows, int64_t cols, Context& c, F&& compute) {
  if constexpr (kOnDevice<Real>) {
    const Matrix<float> result = c.arena.matrix<float>(rows, cols);
    const Arena::Scope scope(c.arena);
    Matrix<Real> found = compute();
    if (found.stride != cols) {
      const Matrix<Real> dense = c.arena.matrix<Real>(rows, cols);
      copy_rows<Real>(found, dense);
      found = dense;
    }
    download(found.data, {result.data, to_size(rows * cols)});
    return result;
  } else {
    return compute();
  }
}

// Returns ranges of rows, one after the other: a view if they are next to each other.
template <class Real>
Matrix<Real> rows_of(Matrix<Real> m, std::span<const RowRange> ranges, Arena& arena) {
  int64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.rows();
  const int64_t begin = ranges.front().begin;
  int64_t end = begin;
  for (const RowRange& range : ranges) end = range.begin == end ? range.end : -1;
  if (end >= 0) return m.row_range(begin, end);
  const std::span<int32_t> numbers(arena.take<int32_t>(rows), to_size(rows));
  auto next = numbers.begin();
  for (const RowRange& range : ranges)
    for (int64_t row = range.begin; row < range.end; row++) *next++ = static_cast<int32_t>(row);
  const Matrix<Real> copy = arena.matrix<Real>(rows, m.cols);
  gather_rows<Real>(m, numbers, copy);
  return copy;
}

// Returns the sequences from `first` on that are encoded together. More rows would not make the products faster, but
// would take more memory.
Packed part_of(const Packed& all, int64_t first) {
  const int64_t most_tokens = kEncodedTokens * threads();
  Packed part;
  for (int64_t s = first; s < all.sequences(); s++) {
    const auto sequence = all.sequence(s);
    if (part.tokens() > 0 && part.tokens() + std::ssize(sequence) > most_tokens) break;
    part.append(sequence);
  }
  return part;
}

}  // namespace

template <class Real>
Matrix<float> TransformerInference<Real>::hidden(const Packed& texts, Context& c) const {
  [[maybe_unused]] const OneAtATime<Real> alone;
  [[maybe_unused]] const auto uploaded = upload<Real>(texts);
  return on_host<Real>(texts.tokens(), config().d_model, c, [&] { return model_->hidden(texts, c); });
}

template <class Real>
Matrix<float> TransformerInference<Real>::last_hidden(const Packed& target, Context& c) const {
  [[maybe_unused]] const OneAtATime<Real> alone;
  [[maybe_unused]] const auto uploaded = upload<Real>(target);
  return on_host<Real>(target.sequences(), config().d_model, c, [&] { return model_->last_hidden(target, c); });
}

template <class Real>
int64_t TransformerInference<Real>::row_bytes() const {
  return row_width(*model_) * static_cast<int64_t>(sizeof(Real));
}

template <class Real>
std::unique_ptr<KeysValues> TransformerInference<Real>::make_rows(const CacheRows& rows, Arena& memory) const {
  return std::make_unique<LayerRows<Real>>(*model_, rows, memory);
}

template <class Real>
std::unique_ptr<KeysValues> TransformerInference<Real>::make_growing_rows() const {
  return std::make_unique<LayerRows<Real>>(*model_);
}

// Encodes a few sequences at a time.
template <class Real>
void TransformerInference<Real>::encode(const Packed& sources, std::span<const RowRange> rows, KeysValues& to,
                                        Context& c) const {
  [[maybe_unused]] const OneAtATime<Real> alone;
  const auto& caches = static_cast<const LayerRows<Real>&>(to).caches();
  for (int64_t first = 0; first < sources.sequences();) {
    const Arena::Scope scope(c.arena);
    const Packed part = part_of(sources, first);
    [[maybe_unused]] const auto uploaded = upload<Real>(part);
    const Matrix<Real> memory = model_->encode(part, c);
    for (int64_t s = 0; s < part.sequences();) {  // sequences with consecutive rows together
      RowRange from{part.offsets[to_size(s)], 0}, place = rows[to_size(first + s)];
      for (s++; s < part.sequences() && rows[to_size(first + s)].begin == place.end; s++)
        place.end = rows[to_size(first + s)].end;
      from.end = part.offsets[to_size(s)];
      auto parts = caches;
      for (auto& cache : parts) cache.cross = cache.cross.row_range(place.begin, place.end);
      model_->fill_cross(memory.row_range(from.begin, from.end), parts, c);
    }
    first += part.sequences();
  }
}

template <class Real>
std::vector<NextResult> TransformerInference<Real>::step(const DecodingStep& step, KeysValues& rows,
                                                         std::span<const NextRequest> requests, Context& c) const {
  [[maybe_unused]] const OneAtATime<Real> alone;
  [[maybe_unused]] const Uploaded<Real> uploaded({step.ids, step.positions, step.new_rows});
  const Matrix<Real> h = model_->step(step, static_cast<const LayerRows<Real>&>(rows).caches(), c);
  std::vector<NextResult> results;
  for (const NextRequest& request : requests) results.push_back(next(rows_of(h, request.tokens, c.arena), request, c));
  return results;
}

template <class Real>
NextResult TransformerInference<Real>::next(Matrix<const Real> h, const NextRequest& request, Context& c) const {
  const Output<Real>& output = model_->output();
  if constexpr (kOnDevice<Real>) {
    const Matrix<const Real> W = output.weight().matrix();
    if (request.best == 0) {
      const Matrix<float> logits = c.arena.matrix<float>(h.rows, W.rows);
      logits_to_host(h, W, output.bias(), logits, c.arena, output.cap());
      return {{}, logits};
    }
    const NextTokens best = make_next_tokens(h.rows, request.best, std::ssize(request.excluded), c.arena);
    next_tokens(h, W, output.bias(), request.excluded, best, c.arena, output.cap());
    return {best, {}};
  } else {
    if (request.best == 0) return {{}, output.logits(h, c)};
    return {output.next(h, request.excluded, request.best, c), {}};
  }
}

template class TransformerInference<float>;
template class TransformerInference<Device<float>>;
template class TransformerInference<Device<bfloat16>>;

std::shared_ptr<const InferenceEngine> make_host_inference(const Transformer<float>& model) {
  const std::shared_ptr<const Transformer<float>> unowned(std::shared_ptr<void>(), &model);
  return std::make_shared<const TransformerInference<float>>(model, unowned);
}

}  // namespace qkv
