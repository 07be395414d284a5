// Adam for rows of a table: kernels against the reference.
#include "ops/adam_rows.h"

#include <numeric>

#include "ops/reference/adam_rows_reference.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::expect_as_accurate;
using testing::normal;

template <class Real>
struct Table {
  explicit Table(int64_t size)
      : w(normal<Real>(size, 1)), m(normal<Real>(size, 2)), v(normal<Real>(size, 3)), average(normal<Real>(size, 4)) {
    for (Real& value : v) value = std::abs(value);
  }
  AdamRow<Real> row() { return {w.data(), m.data(), v.data(), average.data()}; }
  AdamRow<const Real> const_row() const { return {w.data(), m.data(), v.data(), average.data()}; }
  std::vector<Real> all() const {
    std::vector<Real> values = w;
    for (const std::vector<Real>* more : {&m, &v, &average}) values.insert(values.end(), more->begin(), more->end());
    return values;
  }

  std::vector<Real> w, m, v, average;
};

const MissedSteps kMissed = {.correction = 1.7,
                             .epsilon = 1e-3,
                             .moved = 0.3,
                             .average_moved = 0.2,
                             .m_factor = 0.5,
                             .v_factor = 0.9,
                             .kept = 0.6};

template <class Real, class CatchUp>
std::vector<Real> caught_up(int64_t cols, CatchUp&& catch_up) {
  Table<Real> table(cols);
  catch_up(table);
  return table.all();
}

TEST(AdamRows, CatchingUpIsAsAccurateAsTheReference) {
  testing::for_each_isa([] {
    for (const int64_t cols : {1, 15, 16, 17, 50, 64, 129}) {
      const auto plain = [&](auto& table) { reference::catch_up(kMissed, table.row(), cols); };
      const auto fast = [&](Table<float>& table) { catch_up<float>(kMissed, table.row(), cols); };
      expect_as_accurate(caught_up<float>(cols, fast), caught_up<float>(cols, plain), caught_up<double>(cols, plain),
                         2);
    }
  });
}

TEST(AdamRows, ACopyCatchesUpWithTheSameBits) {
  constexpr int64_t kCols = 37;
  Table<float> table(kCols);
  std::vector<float> weights(kCols), average(kCols);
  caught_up_weights<float>(kMissed, table.const_row(), kCols, weights.data());
  caught_up_average<float>(kMissed, table.const_row(), kCols, average.data());
  catch_up<float>(kMissed, table.row(), kCols);
  EXPECT_EQ(weights, table.w);
  EXPECT_EQ(average, table.average);
}

TEST(AdamRows, AreUpdatedAsByAdamAndOthersAreNotTouched) {
  const AdamStep step = {.learning_rate = 0.01, .gradient_scale = 0.5, .step = 7, .average_decay = 0.9};
  for (const int64_t d : {1, 17, 64}) {
    const int64_t V = 1000;
    std::vector<int32_t> ids(400);
    for (size_t i = 0; i < ids.size(); i++) ids[i] = static_cast<int32_t>(i * 7 % 1000);
    const auto updated = [&]<class Real>(Table<Real>& table, auto&& update) {
      std::vector<Real> gradient = normal<Real>(std::ssize(ids) * d, 9);
      update(Matrix<Real>(gradient.data(), std::ssize(ids), d), table.row());
      for (const Real g : gradient) EXPECT_EQ(g, 0);
    };
    const auto plain = [&](auto gradient, auto row) { reference::adam_update_rows(step, ids, gradient, row); };
    const auto fast = [&](Matrix<float> gradient, AdamRow<float> row) {
      adam_update_rows<float>(step, ids, gradient, row);
    };
    Table<double> exact(V * d);
    updated(exact, plain);
    testing::for_each_isa([&] {
      Table<float> slow(V * d), table(V * d);
      updated(slow, plain);
      updated(table, fast);
      expect_as_accurate(table.all(), slow.all(), exact.all(), 2);
      for (const int threads : {1, 3}) {
        Table<float> again(V * d);
        const auto all = testing::with_threads(threads, [&] { return updated(again, fast), again.all(); });
        EXPECT_EQ(all, table.all());
      }
    });
  }
}

}  // namespace
}  // namespace qkv
