// Products, activations, dropout, norms and the optimizer of the CUDA plugin against the references.
#include "ops/adam.h"
#include "ops/dropout.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/next_tokens.h"
#include "ops/reference/activation_reference.h"
#include "ops/reference/adam_reference.h"
#include "ops/reference/layer_norm_reference.h"
#include "ops/reference/linear_reference.h"
#include "ops/reference/softcap_reference.h"
#include "ops/softcap.h"
#include "tests/cuda/device_matrix.h"

namespace qkv {
namespace {

using testing::device_shapes;
using testing::DeviceMatrix;
using testing::for_each_element;
using testing::on_device;
using testing::representable;
using testing::Shape;
using testing::tolerance_of;

constexpr Activation kKinds[] = {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh};
constexpr Dropout kDrop = {0.3f, 42, 7, 5 << 12};

struct Sizes {
  int64_t N, in, out;
};
// Around the size of a tile.
constexpr Sizes kSizes[] = {{0, 3, 2}, {1, 1, 1}, {3, 0, 4}, {5, 16, 7}, {65, 17, 63}, {64, 130, 66}};

TEST(CudaLinear, IsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const auto [N, in, out] : kSizes)
    for_each_element([&]<class T>(T) {
      Arena arena;
      DeviceMatrix<T> X(arena, {N, in}, 1), W(arena, {out, in}, 2), Y(arena, {N, out}, 3);
      const std::vector<double> b = representable<T>(out, 4);
      const Device<T>* const bias = on_device<T>(arena, b);
      linear<Device<T>>(X.view(), W.view(), bias, Y.view(), arena);
      reference::linear<double>(X.host(), W.host(), b.data(), Y.host());
      Y.expect_host(tolerance_of<T>(in));
      linear<Device<T>>(X.view(), W.view(), nullptr, Y.view(), arena);
      reference::linear<double>(X.host(), W.host(), nullptr, Y.host());
      Y.expect_host(tolerance_of<T>(in));
    });
}

// A product and its gradients, against the reference. The rows of the matrices are aligned with a gap of 8.
template <class T>
void expect_products_of_the_reference(const Sizes& sizes, bool accumulate, int64_t gap = 3) {
  const auto [N, in, out] = sizes;
  SCOPED_TRACE(std::to_string(N) + " rows, " + std::to_string(in) + " to " + std::to_string(out));
  Arena arena;
  DeviceMatrix<T> X(arena, {N, in}, 1, gap), W(arena, {out, in}, 2, gap), Y(arena, {N, out}, 3, gap);
  DeviceMatrix<T> dY(arena, {N, out}, 3, gap), dX(arena, {N, in}, 4, gap);
  DeviceMatrix<float> dW(arena, {out, in}, 5), db(arena, {1, out}, 6);
  linear<Device<T>>(X.view(), W.view(), nullptr, Y.view(), arena);
  reference::linear<double>(X.host(), W.host(), nullptr, Y.host());
  Y.expect_host(tolerance_of<T>(in));
  LinearGradients<Device<T>> to{dX.view(), dW.view(), db.view().data, accumulate};
  linear_backward<Device<T>>(X.view(), W.view(), dY.view(), to, arena);
  reference::linear_backward<double>(X.host(), W.host(), dY.host(), {dX.host(), dW.host(), db.host().data, accumulate});
  dX.expect_host(tolerance_of<T>(out));
  dW.expect_host(tolerance_of<float>(N));
  db.expect_host(tolerance_of<float>(N));
}

TEST(CudaLinear, GradientsAreThoseOfTheReference) {
  const testing::CudaDevice device;
  for (const Sizes& sizes : kSizes)
    for_each_element([&]<class T>(T) {
      for (const bool accumulate : {false, true}) expect_products_of_the_reference<T>(sizes, accumulate);
    });
}

// Around the sizes of tiles and of parts of K, with aligned rows and without.
TEST(CudaLinear, TilesAreThoseOfTheReference) {
  const testing::CudaDevice device;
  for (const Sizes& sizes : {Sizes{16, 520, 72}, {17, 8, 64}, {65, 32, 1032}, {130, 1056, 136}, {4104, 16, 24}})
    for (const int64_t gap : {3, 8}) expect_products_of_the_reference<bfloat16>(sizes, true, gap);
}

// 128 tiles of 128 × 128, which is when these are chosen.
TEST(CudaLinear, LargeTilesAreThoseOfTheReference) {
  const testing::CudaDevice device;
  expect_products_of_the_reference<bfloat16>({1930, 40, 1032}, false, 8);
}

TEST(CudaLinear, EpiloguesSeeTheUnroundedProduct) {
  const testing::CudaDevice device;
  for_each_element([&]<class T>(T) {
    for (const Activation kind : kKinds) {
      Arena arena;
      DeviceMatrix<T> X(arena, {9, 20}, 1), W(arena, {140, 20}, 2), Y(arena, {9, 140}, 3), y(arena, {9, 140}, 4);
      linear<Device<T>>(X.view(), W.view(), nullptr, Y.view(), arena,
                        Epilogue<Device<T>>::activation(kind, kDrop, y.view()));
      reference::linear<double>(X.host(), W.host(), nullptr, Y.host());
      reference::activation<double>(kind, Y.host(), kDrop, y.host(), Y.host().whole());
      Y.expect_host(tolerance_of<T>(20));
      y.expect_host(tolerance_of<T>(20));
      linear<Device<T>>(X.view(), W.view(), nullptr, Y.view(), arena,
                        Epilogue<Device<T>>::activation(kind, kDrop, Y.view()));
      reference::activation<double>(kind, Y.host(), kDrop, Y.host(), Y.host().whole());
      Y.expect_host(tolerance_of<T>(20));
    }
    Arena arena;
    DeviceMatrix<T> X(arena, {9, 20}, 1), W(arena, {33, 20}, 2), Y(arena, {9, 33}, 3);
    linear<Device<T>>(X.view(), W.view(), nullptr, Y.view(), arena, Epilogue<Device<T>>::softcap(4));
    reference::linear<double>(X.host(), W.host(), nullptr, Y.host());
    reference::softcap(Y.host(), 4.0);
    Y.expect_host(tolerance_of<T>(20));
  });
}

TEST(CudaLinear, EpilogueOfTheGradientIsThatOfTheReference) {
  const testing::CudaDevice device;
  for_each_element([&]<class T>(T) {
    for (const Activation kind : kKinds) {
      Arena arena;
      DeviceMatrix<T> X(arena, {9, 20}, 1), W(arena, {33, 20}, 2), dY(arena, {9, 33}, 3), dX(arena, {9, 20}, 4);
      DeviceMatrix<float> dW(arena, {33, 20}, 5);
      LinearGradients<Device<T>> to{dX.view(), dW.view()};
      to.epilogue = Epilogue<Device<T>>::activation_backward(kind, kDrop, X.view());
      linear_backward<Device<T>>(X.view(), W.view(), dY.view(), to, arena);
      reference::linear_backward<double>(X.host(), W.host(), dY.host(), {dX.host(), dW.host()});
      reference::activation_backward<double>(kind, X.host(), dX.host(), kDrop, dX.host(), dX.host().whole());
      dX.expect_host(tolerance_of<T>(33));
    }
  });
}

// Products of 1, 70 and 1,000 rows are computed in tiles of different sizes, of one part of K or several. Logits are
// not rounded to bfloat16.
TEST(CudaLinear, RowsDoNotDependOnOtherRows) {
  const testing::CudaDevice device;
  for_each_element([&]<class T>(T) {
    Arena arena;
    const DeviceMatrix<T> X(arena, {1000, 600}, 1, 8), W(arena, {520, 600}, 2, 8);
    const auto row_69 = [&](int64_t begin, int64_t end) {
      std::vector<float> all(to_size((end - begin) * 520));
      logits_to_host<T>(X.view().row_range(begin, end), W.view(), nullptr, {all.data(), end - begin, 520}, arena);
      return std::vector(all.begin() + (69 - begin) * 520, all.begin() + (70 - begin) * 520);
    };
    const std::vector<float> alone = row_69(69, 70);
    EXPECT_EQ(row_69(0, 70), alone);
    EXPECT_EQ(row_69(0, 1000), alone);
  });
}

TEST(CudaActivation, GatedIsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const Shape shape : device_shapes())
    for_each_element([&]<class T>(T) {
      for (const Activation kind : kKinds) {
        const Shape wide = {shape.rows, 2 * shape.cols};
        Arena arena;
        DeviceMatrix<T> x(arena, wide, 1), y(arena, shape, 2), dy(arena, shape, 3), dx(arena, wide, 4);
        gated_activation<Device<T>>(kind, x.view(), kDrop, y.view());
        reference::gated_activation<double>(kind, x.host(), kDrop, y.host());
        y.expect_host(tolerance_of<T>());
        gated_activation_backward<Device<T>>(kind, x.view(), dy.view(), kDrop, dx.view());
        reference::gated_activation_backward<double>(kind, x.host(), dy.host(), kDrop, dx.host());
        dx.expect_host(tolerance_of<T>());
      }
    });
}

TEST(CudaDropout, HasTheMaskOfTheDefinition) {
  const testing::CudaDevice device;
  for (const Shape shape : device_shapes())
    for_each_element([&]<class T>(T) {
      Arena arena;
      DeviceMatrix<T> x(arena, shape, 1), f(arena, shape, 2), y(arena, shape, 3), d(arena, shape, 4);
      add_dropout<Device<T>>(x.view(), f.view(), kDrop, y.view());
      reference::add_dropout<double>(x.host(), f.host(), kDrop, y.host());
      y.expect_host(tolerance_of<T>());
      dropout<Device<T>>(x.view(), kDrop, x.view());
      reference::dropout<double>(x.host(), kDrop, x.host());
      x.expect_host(tolerance_of<T>());
      softcap_backward<Device<T>>(f.view(), 3, d.view());
      reference::softcap_backward<double>(f.host(), 3, d.host());
      d.expect_host(tolerance_of<T>());
    });
}

TEST(CudaLayerNorm, IsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const Shape shape : device_shapes())
    for_each_element([&]<class T>(T) {
      for (const bool rms : {false, true}) {
        if (shape.cols < 2) continue;  // a row of one number has no variance
        Arena arena;
        DeviceMatrix<T> x(arena, shape, 1), dy(arena, shape, 2), y(arena, shape, 3);
        DeviceMatrix<float> mean(arena, {1, shape.rows}, 4), rstd(arena, {1, shape.rows}, 5);
        DeviceMatrix<float> dgamma(arena, {1, shape.cols}, 6), dbeta(arena, {1, shape.cols}, 7);
        const std::vector<double> gamma = representable<T>(shape.cols, 8), beta = representable<T>(shape.cols, 9);
        const Device<T>*const g = on_device<T>(arena, gamma), *const b = on_device<T>(arena, beta);
        const double epsilon = 1e-5f;
        layer_norm<Device<T>>(x.view(), g, rms ? nullptr : b, 1e-5f, y.view(), rms ? nullptr : mean.view().data,
                              rstd.view().data);
        reference::layer_norm<double>(x.host(), gamma.data(), rms ? nullptr : beta.data(), epsilon, y.host(),
                                      rms ? nullptr : mean.host().data, rstd.host().data);
        y.expect_host(tolerance_of<T>(shape.cols));
        mean.expect_host(tolerance_of<float>(shape.cols));
        rstd.expect_host(tolerance_of<float>(shape.cols));
        layer_norm_backward<Device<T>>(dy.view(), x.view(), g, rms ? nullptr : mean.view().data, rstd.view().data,
                                       dy.view(), dgamma.view().data, rms ? nullptr : dbeta.view().data, arena);
        reference::layer_norm_backward<double>(dy.host(), x.host(), gamma.data(), rms ? nullptr : mean.host().data,
                                               rstd.host().data, dy.host(), dgamma.host().data,
                                               rms ? nullptr : dbeta.host().data);
        dy.expect_host(tolerance_of<T>(shape.cols));
        dgamma.expect_host(tolerance_of<float>(shape.rows + shape.cols));
        dbeta.expect_host(tolerance_of<float>(shape.rows));
      }
    });
}

TEST(CudaAdam, IsThatOfTheReference) {
  const testing::CudaDevice device;
  for (const bool decoupled : {false, true})
    for_each_element([&]<class T>(T) {
      Arena arena;
      const Shape shape = {1, 1000};
      DeviceMatrix<float> w(arena, shape, 1), g(arena, shape, 2), m(arena, shape, 3), average(arena, shape, 4);
      DeviceMatrix<float> v(arena, shape, std::vector<double>(1000, 0.5));
      DeviceMatrix<T> stored(arena, shape, 5);
      const auto all = []<class U>(const DeviceMatrix<U>& x) { return std::span(x.view().data, 1000); };
      const auto host = [](auto& x) { return std::span(x.host().data, 1000); };
      const AdamStep step = {1e-3, 0.9, 0.98, 1e-9, 0.1, decoupled, 0.5, 3, 0.9};
      adam_update<T>(step, all(w), all(g), {all(m), all(v)}, all(average), all(stored));
      reference::adam_update<double>(step, host(w), host(g), host(m), host(v), host(average));
      for (auto* x : {&w, &g, &m, &v, &average}) x->expect_host(tolerance_of<float>());
      if (std::is_same_v<T, float>) return;  // w is the only copy
      std::ranges::copy(host(w), host(stored).begin());
      stored.expect_host(tolerance_of<T>());
    });
}

TEST(CudaAdam, SumsSquaresInBlocks) {
  const testing::CudaDevice device;
  for (const int64_t n : {0, 1, 16384, 16385, 40000}) {
    Arena arena;
    const std::vector<double> x = representable<float>(n, 1);
    const Device<float>* const numbers = on_device<float>(arena, x);
    const double exact = reference::sum_of_squares<double>(x);
    EXPECT_NEAR(sum_of_squares<Device<float>>(std::span(numbers, to_size(n))), exact, 1e-12 * exact);
  }
}

}  // namespace
}  // namespace qkv
