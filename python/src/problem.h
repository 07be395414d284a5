// The arguments of qkv.attention, converted for the C++ op.
#pragma once

#include <optional>
#include <vector>

#include "array.h"
#include "qkv/attention.h"

namespace qkv::python {

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  fail_in("attention", format, std::forward<Args>(args)...);
}

// As given in Python; None where not given.
struct Arguments {
  nb::object q, k, v, mask, alibi, q_offsets, k_offsets, lengths, k_lengths;
  std::optional<double> scale, softcap;
  Causal causal = Causal::none;
  Window window;
};

// Checked arguments, whose shapes, types and strides fit together.
class Problem {
 public:
  // Throws Error that names the argument.
  explicit Problem(const Arguments& arguments);

  template <class T>
  AttentionInput<T> input() const;

  // Returns [B, H, T, width], or packed [N, H, width]; without the last axis for width 0.
  Shape of_queries(int64_t width) const;
  Shape weights_shape() const;  // [B, H, T, S], with the longest T and S
  const Array& q() const { return q_; }
  const Array& k() const { return k_; }
  const Array& v() const { return v_; }
  const Array* mask() const { return mask_ ? &*mask_ : nullptr; }
  int64_t value_width() const { return v_.size(-1); }
  // Whether sequences of a batch may be shorter than it, so that a call does not assign all of its results.
  bool is_padded() const { return !lengths_.empty() || !k_lengths_.empty(); }

  // Converts strides like those of q, or of an array without its last axis.
  template <class T>
  Heads<T> heads(T* data, const Shape& strides) const {
    if (packed_) return {data, strides[0], strides[1], 0};
    return {data, strides[2], strides[1], strides[0]};
  }

 private:
  void read_offsets(const Arguments& arguments);
  void read_lengths(const Arguments& arguments);
  void check_keys() const;

  Array q_, k_, v_;
  std::optional<Array> mask_, alibi_;
  std::optional<double> scale_, softcap_;
  Causal causal_;
  Window window_;
  bool packed_ = false;
  int64_t B_ = 0, H_ = 0, K_ = 0, T_ = 0, S_ = 0;  // T and S are the longest
  std::vector<int32_t> q_offsets_, k_offsets_, lengths_, k_lengths_;
};

}  // namespace qkv::python
