#include "layer_input.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace qkv::python {
namespace {

// The inputs of each LayerKind, and what the arguments of keys begin with.
constexpr const char* kNames[][3] = {
    {"x", "", ""}, {"ids", "", ""}, {"q", "k", "v"}, {"x", "memory", ""}, {"source", "target", ""}};

constexpr const char* kPrefixes[] = {"", "", "k_", "memory_", "source_"};

int64_t rows_in(const Shape& leading) {
  return std::accumulate(leading.begin(), leading.end(), int64_t{1}, std::multiplies<>());
}

Shape without_last(const Shape& shape) { return {shape.begin(), shape.end() - 1}; }

// Sequences and the longest of them, for the shape of masks.
std::pair<int64_t, int64_t> extent(const layers::Rows& rows, int64_t n) {
  if (rows.offsets.empty() && rows.lengths.empty()) return {1, n};
  if (rows.offsets.empty()) return {std::ssize(rows.lengths), rows.width};
  int64_t longest = 0;
  for (size_t s = 1; s < rows.offsets.size(); s++)
    longest = std::max<int64_t>(longest, rows.offsets[s] - rows.offsets[s - 1]);
  return {std::ssize(rows.offsets) - 1, longest};
}

std::vector<int32_t> narrow(const std::string& where, const std::string& name, const std::vector<int64_t>& values) {
  std::vector<int32_t> found;
  for (const int64_t value : values) {
    if (value < 0 || value > std::numeric_limits<int32_t>::max())
      fail_in(where, "{}[{}] is {}, expected 0 to {}", name, found.size(), value, std::numeric_limits<int32_t>::max());
    found.push_back(static_cast<int32_t>(value));
  }
  return found;
}

}  // namespace

template <class Real>
LayerRows<Real>::LayerRows(const std::string& where, const char* name, nb::handle object)
    : array_(where, name, object) {
  const Shape& shape = array_.shape();
  if (shape.empty()) fail_in(where, "{} has shape [], expected at least one axis", name);
  array_.check_last_axis();
  const int64_t n = rows_in(without_last(shape)), width = shape.back();
  // The distance of rows is that of the last axis but one that is longer than 1; the axes before it must continue it.
  int64_t distance = width, next = 0;
  for (size_t axis = shape.size() - 1; axis-- > 0;) {
    if (shape[axis] == 1 || n == 0) continue;
    if (next == 0) distance = array_.strides()[axis], next = distance;
    if (array_.strides()[axis] != next || distance < width)
      fail_in(where, "{} has strides [{}], expected rows at equal distances: make a contiguous copy", name,
              fmt::join(array_.strides(), ", "));
    next *= shape[axis];
  }
  matrix_ = {array_.data<Real>(), n, width, distance};
}

template <class Real>
LayerPass<Real>::LayerPass(const std::string& where, LayerKind kind, int64_t heads, const LayerArguments& a)
    : where_(where), arguments_(a), kind_(kind), heads_(heads) {
  call_.causal = a.causal;
  call_.dropout_seed = a.seed;
  if (is_of_ids())
    read_ids();
  else
    read_rows();
}

template <class Real>
void LayerPass<Real>::read_ids() {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object ids = numpy.attr("asarray")(arguments_.inputs.front());
  leading_ = Array(where_, "ids", ids).shape();
  if (leading_.empty() || leading_.size() > 2)
    fail_in(where_, "ids has shape {}, expected [N] or [B, T]", to_text(leading_));
  call_.rows = rows_of(leading_, arguments_.offsets, arguments_.lengths, "");
  if (rows_in(leading_) > 0) ids_ = narrow(where_, "ids", read_integers(where_, "ids", ids.attr("reshape")(-1), "[N]"));
}

template <class Real>
void LayerPass<Real>::read_rows() {
  const LayerArguments& a = arguments_;
  for (size_t i = 0; i < a.inputs.size(); i++)
    rows_.emplace_back(where_, kNames[static_cast<size_t>(kind_)][std::min<size_t>(i, 2)], a.inputs[i]);
  leading_ = without_last(rows_[std::min(output_input(), rows_.size() - 1)].shape());
  if (kind_ == LayerKind::rows) return;
  for (const auto& rows : rows_)
    if (rows.shape().size() != 2 && rows.shape().size() != 3)
      fail_in(where_, "inputs must have shape [N, d] or [B, T, d] (found {})", to_text(rows.shape()));
  if (rows_.size() <= output_input()) return;  // the module names what is missing
  const size_t x = output_input(), memory = kind_ == LayerKind::whole ? 0 : std::min<size_t>(1, rows_.size() - 1);
  call_.rows = rows_of(without_last(rows_[x].shape()), a.offsets, a.lengths, "");
  call_.memory_rows = memory == x ? call_.rows
                                  : rows_of(without_last(rows_[memory].shape()), a.memory_offsets, a.memory_lengths,
                                            kPrefixes[static_cast<size_t>(kind_)]);
  const int64_t N = rows_[x].matrix().rows, M = rows_[memory].matrix().rows;
  const bool self = kind_ != LayerKind::attention;
  call_.mask = masks("mask", a.mask, call_.rows, self ? call_.rows : call_.memory_rows, N, self ? N : M);
  call_.memory_mask = masks("memory_mask", a.memory_mask, call_.rows, call_.memory_rows, N, M);
  call_.source_mask = masks("source_mask", a.source_mask, call_.memory_rows, call_.memory_rows, M, M);
}

template <class Real>
layers::Rows LayerPass<Real>::rows_of(const Shape& shape, nb::handle offsets, nb::handle lengths,
                                      const char* prefix) const {
  const std::string offsets_name = std::string(prefix) + "offsets", lengths_name = std::string(prefix) + "lengths";
  const auto read = [&](const std::string& name, nb::handle object, const char* expected) {
    return narrow(where_, name, read_integers(where_, name.c_str(), object, expected));
  };
  if (shape.size() == 1) {
    if (!lengths.is_none()) fail_in(where_, "{} needs a batch of three axes, [B, T, d]", lengths_name);
    return offsets.is_none() ? layers::Rows() : layers::Rows::packed(read(offsets_name, offsets, "[sequences + 1]"));
  }
  if (!offsets.is_none()) fail_in(where_, "{} needs packed rows, [N, d]", offsets_name);
  const int64_t B = shape[0], T = shape[1];
  if (T > std::numeric_limits<int32_t>::max()) fail_in(where_, "sequences of {} tokens are too long", T);
  std::vector<int32_t> found(static_cast<size_t>(B), static_cast<int32_t>(T));
  if (!lengths.is_none()) found = read(lengths_name, lengths, "[B]");
  if (std::ssize(found) != B)
    fail_in(where_, "{} has {} lengths, expected one for each of {} sequences", lengths_name, found.size(), B);
  return layers::Rows::padded(std::move(found), T);
}

template <class Real>
layers::Masks<Real> LayerPass<Real>::masks(const char* name, nb::handle object, const layers::Rows& queries,
                                           const layers::Rows& keys, int64_t query_rows, int64_t key_rows) {
  if (object.is_none()) return {};
  masks_.emplace_back(where_, name, object);
  const Array& mask = masks_.back();
  const auto [B, T] = extent(queries, query_rows);
  const int64_t S = extent(keys, key_rows).second;
  check_broadcast(mask, {B, heads_, T, S});
  if (mask.holds<bool>())
    return {{}, broadcast(reinterpret_cast<const uint8_t*>(mask.data<bool>()), mask.shape(), mask.strides())};
  if (!mask.holds<Real>())
    fail_in(where_, "{} is {}, expected bool or float{}", name, mask.type_name(), 8 * sizeof(Real));
  return {broadcast(mask.data<Real>(), mask.shape(), mask.strides()), {}};
}

template <class Real>
std::vector<Matrix<const Real>> LayerPass<Real>::inputs() const {
  std::vector<Matrix<const Real>> found;
  for (const auto& rows : rows_) found.push_back(rows.matrix());
  return found;
}

template <class Real>
Shape LayerPass<Real>::output_shape(int64_t width) const {
  Shape shape = leading_;
  shape.push_back(width);
  return shape;
}

template class LayerRows<float>;
template class LayerRows<double>;
template class LayerPass<float>;
template class LayerPass<double>;

}  // namespace qkv::python
