// Logits and best next tokens of the CUDA plugin against the references.
#include "ops/next_tokens.h"

#include "ops/reference/linear_reference.h"
#include "ops/reference/next_tokens_reference.h"
#include "ops/reference/softcap_reference.h"
#include "tests/cuda/device_matrix.h"

namespace qkv {
namespace {

using testing::DeviceMatrix;
using testing::for_each_element;
using testing::representable;
using testing::tolerance_of;

struct Found {
  NextTokens next;
  std::vector<float> logits;

  template <class T>
  Found(const DeviceMatrix<T>& X, const DeviceMatrix<T>& W, const Device<T>* b, std::span<const int32_t> hidden,
        int64_t k, float cap, Arena& arena)
      : next(make_next_tokens(X.view().rows, k, std::ssize(hidden), arena)),
        logits(to_size(X.view().rows * W.view().rows)) {
    next_tokens<T>(X.view(), W.view(), b, hidden, next, arena, cap);
    logits_to_host<T>(X.view(), W.view(), b, {logits.data(), X.view().rows, W.view().rows}, arena, cap);
  }
};

TEST(CudaNextTokens, AreThoseOfTheReference) {
  const testing::CudaDevice device;
  for (const int64_t V : {1, 5, 33, 300})
    for_each_element([&]<class T>(T) {
      for (const float cap : {0.0f, 3.0f}) {
        constexpr int64_t kRows = 9, kWidth = 20, kBest = 7;
        const std::vector<int32_t> hidden = V > 5 ? std::vector<int32_t>{0, 4, 32} : std::vector<int32_t>{0};
        Arena arena;
        std::vector<double> w = representable<T>(V * kWidth, 2), b = representable<T>(V, 3);
        if (V > 5) std::copy_n(&w[20], 20, &w[31 * 20]), b[31] = b[1];  // tokens 31 and 1 tie
        DeviceMatrix<T> X(arena, {kRows, kWidth}, 1), W(arena, {V, kWidth}, w);
        const Found found(X, W, testing::on_device<T>(arena, b), hidden, kBest, cap, arena);

        std::vector<double> exact(to_size(kRows * V));
        const Matrix<double> y(exact.data(), kRows, V);
        reference::linear<double>(X.host(), W.host(), b.data(), y);
        if (cap > 0) reference::softcap<double>(y, cap);
        EXPECT_LE(testing::relative_error(found.logits, exact), tolerance_of<float>(kWidth));

        const Matrix<const float> logits(found.logits.data(), kRows, V);
        const NextTokens expected = make_next_tokens(kRows, kBest, std::ssize(hidden), arena);
        reference::next_tokens(logits, hidden, expected);
        for (int64_t n = 0; n < kRows; n++) {
          EXPECT_NEAR(found.next.lse[n], expected.lse[n], tolerance_of<float>(V) * std::abs(expected.lse[n]));
          if (V == 1)
            EXPECT_EQ(found.next.lse_seen[n], -std::numeric_limits<float>::infinity());
          else
            EXPECT_NEAR(found.next.lse_seen[n], expected.lse_seen[n], tolerance_of<float>(V) * 4);
          for (int64_t i = 0; i < std::ssize(hidden); i++) EXPECT_EQ(found.next.hidden(n, i), expected.hidden(n, i));
          for (int64_t i = 0; i < kBest; i++) {
            EXPECT_EQ(found.next.tokens(n, i), expected.tokens(n, i));
            EXPECT_EQ(found.next.logits(n, i), expected.logits(n, i));
          }
        }
      }
    });
}

}  // namespace
}  // namespace qkv
