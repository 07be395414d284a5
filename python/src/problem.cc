#include "problem.h"

#include <algorithm>
#include <cmath>

namespace qkv::python {
namespace {

std::optional<Array> optional_array(const char* name, nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return Array("attention", name, object);
}

// Reads offsets [0, …, tokens] in ascending order.
std::vector<int32_t> read(const char* name, nb::handle object, int64_t tokens) {
  std::vector<int32_t> offsets;
  int64_t before = 0;
  for (const int64_t offset : read_integers("attention", name, object, "[sequences + 1]")) {
    if (offset < before || offset > tokens)
      fail("{}[{}] is {}, expected {} to {}", name, offsets.size(), offset, before, tokens);
    if (offsets.empty() && offset != 0) fail("{} begins with {}, expected 0", name, offset);
    before = offset;
    offsets.push_back(static_cast<int32_t>(offset));
  }
  if (before != tokens) fail("{} ends with {}, expected the {} tokens", name, before, tokens);
  return offsets;
}

// Reads the length of each of B sequences of at most `longest` tokens.
std::vector<int32_t> read_lengths_of(const char* name, nb::handle object, int64_t B, int64_t longest) {
  std::vector<int32_t> lengths;
  for (const int64_t length : read_integers("attention", name, object, "[B]")) {
    if (length < 0 || length > longest) fail("{}[{}] is {}, expected 0 to {}", name, lengths.size(), length, longest);
    lengths.push_back(static_cast<int32_t>(length));
  }
  if (std::ssize(lengths) != B)
    fail("{} has {} lengths, expected one for each of {} sequences", name, lengths.size(), B);
  return lengths;
}

int64_t longest(const std::vector<int32_t>& offsets) {
  int64_t length = 0;
  for (size_t s = 1; s < offsets.size(); s++) length = std::max<int64_t>(length, offsets[s] - offsets[s - 1]);
  return length;
}

}  // namespace

Problem::Problem(const Arguments& a)
    : q_("attention", "q", a.q),
      k_("attention", "k", a.k),
      v_("attention", "v", a.v),
      mask_(optional_array("mask", a.mask)),
      alibi_(optional_array("alibi", a.alibi)),
      scale_(a.scale),
      softcap_(a.softcap),
      causal_(a.causal),
      window_(a.window),
      packed_(!a.q_offsets.is_none()) {
  if (!packed_ && !a.k_offsets.is_none()) fail("k_offsets without q_offsets");
  if (packed_ && !(a.lengths.is_none() && a.k_lengths.is_none())) fail("lengths together with q_offsets");
  if (!q_.holds<float>() && !q_.holds<double>() && !q_.holds<bfloat16>())
    fail("q is {}, expected float32, float64 or bfloat16", q_.type_name());
  for (const Array* x : {&q_, &k_, &v_}) {
    if (x->ndim() != (packed_ ? 3 : 4))
      fail("{} has shape {}, expected {}", x->name(), to_text(x->shape()),
           packed_ ? "[N, heads, width] with q_offsets" : "[B, heads, T, width], or [N, heads, width] with q_offsets");
    x->check_last_axis();
  }
  check_keys();
  H_ = q_.size(1), K_ = k_.size(1);
  if (packed_)
    read_offsets(a);
  else
    B_ = q_.size(0), T_ = q_.size(2), S_ = k_.size(2), read_lengths(a);
  if (mask_) check_broadcast(*mask_, weights_shape());
  if (alibi_ && alibi_->shape() != Shape{H_})
    fail("alibi has shape {}, expected one slope for each of {} heads", to_text(alibi_->shape()), H_);
  if (alibi_) alibi_->check_last_axis();
  if (softcap_ && !(*softcap_ > 0 && std::isfinite(*softcap_))) fail("softcap is {}, expected more than 0", *softcap_);
}

void Problem::check_keys() const {
  const auto differ = [](const Array& x, const Array& y, const char* what, int64_t axis) {
    if (x.size(axis) != y.size(axis))
      fail("{} has {} {}, {} {}: expected the same", x.name(), x.size(axis), what, y.name(), y.size(axis));
  };
  if (q_.size(1) < 1) fail("q has shape {}, expected at least one head", to_text(q_.shape()));
  if (k_.size(1) < 1 || q_.size(1) % k_.size(1))
    fail("k has {} heads, q {}: expected a divisor", k_.size(1), q_.size(1));
  differ(v_, k_, "heads", 1);
  differ(k_, q_, "numbers a head", -1);
  differ(v_, k_, "tokens", packed_ ? 0 : 2);
  if (packed_) return;
  differ(k_, q_, "sequences", 0);
  differ(v_, q_, "sequences", 0);
}

void Problem::read_offsets(const Arguments& a) {
  const bool same = a.k_offsets.is_none();
  q_offsets_ = read("q_offsets", a.q_offsets, q_.size(0));
  k_offsets_ = read(same ? "q_offsets" : "k_offsets", same ? a.q_offsets : a.k_offsets, k_.size(0));
  if (k_offsets_.size() != q_offsets_.size())
    fail("k_offsets has {} sequences, q_offsets {}: expected the same", k_offsets_.size() - 1, q_offsets_.size() - 1);
  B_ = static_cast<int64_t>(q_offsets_.size()) - 1, T_ = longest(q_offsets_), S_ = longest(k_offsets_);
}

void Problem::read_lengths(const Arguments& a) {
  if (!a.lengths.is_none()) lengths_ = read_lengths_of("lengths", a.lengths, B_, T_);
  if (!a.k_lengths.is_none())
    k_lengths_ = read_lengths_of("k_lengths", a.k_lengths, B_, S_);
  else if (!lengths_.empty() && T_ == S_)
    k_lengths_ = lengths_;
  else if (!lengths_.empty())
    fail("k has {} tokens, q {}: expected the same, or k_lengths", S_, T_);
}

Shape Problem::of_queries(int64_t width) const {
  Shape shape = packed_ ? Shape{q_.size(0), H_} : Shape{B_, H_, T_};
  if (width) shape.push_back(width);
  return shape;
}

Shape Problem::weights_shape() const { return {B_, H_, T_, S_}; }

template <class T>
AttentionInput<T> Problem::input() const {
  using Real = Arithmetic<T>;
  AttentionInput<T> in;
  in.q = heads(q_.data<T>(), q_.strides()), in.k = heads(k_.data<T>(), k_.strides());
  in.v = heads(v_.data<T>(), v_.strides());
  const auto ends = [](const std::vector<int32_t>& lengths) { return lengths.empty() ? nullptr : lengths.data(); };
  in.sequences = {B_, nullptr, ends(lengths_), nullptr, ends(k_lengths_), T_, S_};
  if (packed_)
    in.sequences = {B_, q_offsets_.data(), q_offsets_.data() + 1, k_offsets_.data(), k_offsets_.data() + 1, T_, S_};
  in.heads = H_, in.kv_heads = K_, in.key_width = q_.size(-1), in.value_width = v_.size(-1);
  in.scale = static_cast<Real>(scale_.value_or(1 / std::sqrt(static_cast<double>(in.key_width))));
  in.softcap = static_cast<Real>(softcap_.value_or(0));
  in.causal = causal_, in.window = window_;
  if (mask_ && mask_->holds<bool>())
    in.allowed = broadcast(reinterpret_cast<const uint8_t*>(mask_->data<bool>()), mask_->shape(), mask_->strides());
  else if (mask_ && !mask_->holds<Real>())
    fail("mask is {}, expected bool or float{}", mask_->type_name(), 8 * sizeof(Real));
  else if (mask_)
    in.mask = broadcast(mask_->data<Real>(), mask_->shape(), mask_->strides());
  if (alibi_) in.alibi = alibi_->data<Real>();
  return in;
}

template AttentionInput<float> Problem::input() const;
template AttentionInput<double> Problem::input() const;
template AttentionInput<bfloat16> Problem::input() const;

}  // namespace qkv::python
