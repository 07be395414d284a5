// Activation functions φ and their derivatives φ', vectorized. gelu uses the upper tail of the normal distribution,
// Q(t) = 1 − Φ(t) for t ≥ 0.
#include "ops/activation.h"

#include "core/profile.h"
#include "core/system/isa.h"
#include "ops/cpu/parallel_rows.h"
#include "ops/reference/activation_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/activation.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

struct Relu {
  static HWY_INLINE Vector value(Vector x) { return hn::IfThenZeroElse(hn::Lt(x, zero()), x); }
  static HWY_INLINE Vector slope(Vector x) { return hn::IfThenElseZero(hn::Gt(x, zero()), set(1.0f)); }
};

struct Gelu {
  // Q(t) = bell · (c1 k + … + c7 k⁷) with bell = exp(−t²/2), k = 1 / (1 + 0.32 t) and t ≥ 0. The form is that of
  // Hastings, "Approximations for Digital Computers" (1955), sheet 43. The coefficients were fitted for this file; the
  // error is below 5e-9.
  static HWY_INLINE Vector upper_tail(Vector t, Vector bell) {
    const Vector k = hn::Div(set(1.0f), hn::MulAdd(t, set(0.32f), set(1.0f)));
    Vector p = set(0.0425739214f);
    p = hn::MulAdd(p, k, set(-0.225454628f));
    p = hn::MulAdd(p, k, set(0.377763271f));
    p = hn::MulAdd(p, k, set(-0.134027839f));
    p = hn::MulAdd(p, k, set(0.199437261f));
    p = hn::MulAdd(p, k, set(0.110679336f));
    p = hn::MulAdd(p, k, set(0.129028663f));
    return hn::Mul(hn::Mul(p, k), bell);
  }
  static HWY_INLINE Vector bell(Vector x) { return exp(hn::Mul(hn::Mul(x, x), set(-0.5f))); }

  // x Φ(x) = max(0, x) − |x| Q(|x|)
  static HWY_INLINE Vector value(Vector x) {
    const Vector t = hn::Abs(x);
    return hn::NegMulAdd(t, upper_tail(t, bell(x)), Relu::value(x));
  }
  // Φ(x) + x exp(−x²/2) / √(2π)
  static HWY_INLINE Vector slope(Vector x) {
    const Vector b = bell(x), tail = upper_tail(hn::Abs(x), b);
    const Vector phi = hn::IfThenElse(hn::Lt(x, zero()), tail, hn::Sub(set(1.0f), tail));
    return hn::MulAdd(hn::Mul(x, b), set(0.398942280f), phi);
  }
};

struct Silu {
  // 1 + e^−x
  static HWY_INLINE Vector one_plus_exp(Vector x) { return hn::Add(set(1.0f), exp2(hn::Mul(x, set(-kLog2e)))); }
  static HWY_INLINE Vector value(Vector x) { return hn::Div(x, one_plus_exp(x)); }
  // σ (1 + x (1 − σ)), σ = 1 / (1 + e^−x)
  static HWY_INLINE Vector slope(Vector x) {
    const Vector sigmoid = hn::Div(set(1.0f), one_plus_exp(x));
    return hn::Mul(sigmoid, hn::MulAdd(x, hn::Sub(set(1.0f), sigmoid), set(1.0f)));
  }
};

struct GeluTanh {
  static constexpr float kRoot = 0.797884561f, kCubic = 0.044715f;  // √(2/π)
  // 1 / (1 + e^−2u) = (1 + tanh u) / 2
  static HWY_INLINE Vector sigmoid(Vector x) {
    const Vector u = hn::Mul(hn::Mul(x, set(2 * kRoot)), hn::MulAdd(hn::Mul(x, x), set(kCubic), set(1.0f)));
    return hn::Div(set(1.0f), Silu::one_plus_exp(u));
  }
  static HWY_INLINE Vector value(Vector x) { return hn::Mul(x, sigmoid(x)); }
  static HWY_INLINE Vector slope(Vector x) {
    const Vector s = sigmoid(x);
    const Vector du2 = hn::MulAdd(hn::Mul(x, x), set(6 * kRoot * kCubic), set(2 * kRoot));  // twice u'
    return hn::Mul(s, hn::MulAdd(hn::Mul(x, du2), hn::Sub(set(1.0f), s), set(1.0f)));
  }
};

template <class Phi>
void forward_block(Matrix<const float> x, const Dropout& drop, Matrix<float> y, const Block& block) {
  DropoutFactors factors(drop);
  for (int64_t n = block.row_begin; n < block.row_end; n++) {
    const float* x_n = x.row(n);
    float* y_n = y.row(n);
    for_columns_dropped(n, block.col_begin, block.col_end, factors, [&](int64_t c, auto io, Vector factor) HWY_ATTR {
      io.store(hn::Mul(Phi::value(io.load(x_n + c)), factor), y_n + c);
    });
  }
}

template <class Phi>
void backward_block(Matrix<const float> x, Matrix<const float> dy, const Dropout& drop, Matrix<float> dx,
                    const Block& block) {
  DropoutFactors factors(drop);
  for (int64_t n = block.row_begin; n < block.row_end; n++) {
    const float *x_n = x.row(n), *dy_n = dy.row(n);
    float* dx_n = dx.row(n);
    for_columns_dropped(n, block.col_begin, block.col_end, factors, [&](int64_t c, auto io, Vector factor) HWY_ATTR {
      io.store(hn::Mul(Phi::slope(io.load(x_n + c)), hn::Mul(io.load(dy_n + c), factor)), dx_n + c);
    });
  }
}

template <class Phi>
void gated_rows(Matrix<const float> x, const Dropout& drop, int64_t first_row, Matrix<float> y) {
  DropoutFactors factors(drop);
  for (int64_t n = 0; n < y.rows; n++) {
    const float *a = x.row(n), *b = a + y.cols;
    float* y_n = y.row(n);
    for_columns_dropped(first_row + n, 0, y.cols, factors, [&](int64_t c, auto io, Vector factor) HWY_ATTR {
      io.store(hn::Mul(hn::Mul(Phi::value(io.load(a + c)), io.load(b + c)), factor), y_n + c);
    });
  }
}

template <class Phi>
void gated_backward_rows(Matrix<const float> x, Matrix<const float> dy, const Dropout& drop, int64_t first_row,
                         Matrix<float> dx) {
  DropoutFactors factors(drop);
  for (int64_t n = 0; n < dy.rows; n++) {
    const float *a = x.row(n), *b = a + dy.cols, *dy_n = dy.row(n);
    float *da = dx.row(n), *db = da + dy.cols;
    for_columns_dropped(first_row + n, 0, dy.cols, factors, [&](int64_t c, auto io, Vector factor) HWY_ATTR {
      const Vector d = hn::Mul(io.load(dy_n + c), factor), a_c = io.load(a + c), b_c = io.load(b + c);
      io.store(hn::Mul(Phi::slope(a_c), hn::Mul(b_c, d)), da + c);
      io.store(hn::Mul(Phi::value(a_c), d), db + c);
    });
  }
}

// Calls f(Phi()).
template <class F>
void with_activation(Activation kind, const F& f) {
  switch (kind) {
    case Activation::relu:
      return f(Relu());
    case Activation::gelu:
      return f(Gelu());
    case Activation::silu:
      return f(Silu());
    case Activation::gelu_tanh:
      return f(GeluTanh());
  }
}

void ActivationBlock(Activation kind, Matrix<const float> x, const Dropout& drop, Matrix<float> y, const Block& block) {
  with_activation(kind, [&](auto phi) { forward_block<decltype(phi)>(x, drop, y, block); });
}

void ActivationBackwardBlock(Activation kind, Matrix<const float> x, Matrix<const float> dy, const Dropout& drop,
                             Matrix<float> dx, const Block& block) {
  with_activation(kind, [&](auto phi) { backward_block<decltype(phi)>(x, dy, drop, dx, block); });
}

void GatedRows(Activation kind, Matrix<const float> x, const Dropout& drop, int64_t first_row, Matrix<float> y) {
  with_activation(kind, [&](auto phi) { gated_rows<decltype(phi)>(x, drop, first_row, y); });
}

void GatedBackwardRows(Activation kind, Matrix<const float> x, Matrix<const float> dy, const Dropout& drop,
                       int64_t first_row, Matrix<float> dx) {
  with_activation(kind, [&](auto phi) { gated_backward_rows<decltype(phi)>(x, dy, drop, first_row, dx); });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(ActivationBlock);
HWY_EXPORT(ActivationBackwardBlock);
HWY_EXPORT(GatedRows);
HWY_EXPORT(GatedBackwardRows);

template <>
void activation<float>(Activation kind, Matrix<const float> x, const Dropout& drop, Matrix<float> y,
                       const Block& block) {
  QKV_DISPATCH(ActivationBlock)(kind, x, drop, y, block);
}

template <>
void activation<double>(Activation kind, Matrix<const double> x, const Dropout& drop, Matrix<double> y,
                        const Block& block) {
  reference::activation(kind, x, drop, y, block);
}

template <>
void activation_backward<float>(Activation kind, Matrix<const float> x, Matrix<const float> dy, const Dropout& drop,
                                Matrix<float> dx, const Block& block) {
  QKV_DISPATCH(ActivationBackwardBlock)(kind, x, dy, drop, dx, block);
}

template <>
void activation_backward<double>(Activation kind, Matrix<const double> x, Matrix<const double> dy, const Dropout& drop,
                                 Matrix<double> dx, const Block& block) {
  reference::activation_backward(kind, x, dy, drop, dx, block);
}

template <>
void gated_activation<float>(Activation kind, Matrix<const float> x, const Dropout& drop, Matrix<float> y) {
  const ProfiledOp profiled("gated activation", {y.rows, y.cols}, memory_work(3, y.rows, y.cols));
  const auto kernel = QKV_DISPATCH(GatedRows);
  parallel_rows(y.rows, x.cols, [&](int64_t begin, int64_t end) {
    kernel(kind, x.row_range(begin, end), drop, begin, y.row_range(begin, end));
  });
}

template <>
void gated_activation<double>(Activation kind, Matrix<const double> x, const Dropout& drop, Matrix<double> y) {
  reference::gated_activation(kind, x, drop, y);
}

template <>
void gated_activation_backward<float>(Activation kind, Matrix<const float> x, Matrix<const float> dy,
                                      const Dropout& drop, Matrix<float> dx) {
  const ProfiledOp profiled("gated activation, backward", {dy.rows, dy.cols}, memory_work(5, dy.rows, dy.cols));
  const auto kernel = QKV_DISPATCH(GatedBackwardRows);
  parallel_rows(dy.rows, x.cols, [&](int64_t begin, int64_t end) {
    kernel(kind, x.row_range(begin, end), dy.row_range(begin, end), drop, begin, dx.row_range(begin, end));
  });
}

template <>
void gated_activation_backward<double>(Activation kind, Matrix<const double> x, Matrix<const double> dy,
                                       const Dropout& drop, Matrix<double> dx) {
  reference::gated_activation_backward(kind, x, dy, drop, dx);
}

}  // namespace qkv
#endif
