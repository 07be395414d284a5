// Losses of the logits of labels: kernel against reference, gradients against finite differences, and both against
// PyTorch and sentence-transformers.
#include "ops/label_loss.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ops/reference/label_loss_reference.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::expect_contains;
using testing::Padded;
using testing::Shape;

// A loss with random targets.
struct LabelLossCase {
  LabelLoss kind;
  Shape shape;
  bool weighted = false;
  double smoothing = 0;
  std::vector<int32_t> labels = {}, groups = {};
  std::vector<float> values = {}, weights = {};

  LabelTargets targets() const { return {labels, values, groups, weights, smoothing}; }
};

void PrintTo(const LabelLossCase& c, std::ostream* out) {
  *out << names_of(c.kind)[static_cast<size_t>(c.kind)] << " of " << c.shape.rows << " x " << c.shape.cols
       << (c.weighted ? ", weights" : "") << ", smoothing " << c.smoothing;
}

LabelLossCase with_targets(LabelLossCase c) {
  const auto [N, K] = c.shape;
  Random random(4, Stream::test);
  const bool lists = c.kind == LabelLoss::pairwise || c.kind == LabelLoss::listwise;
  for (int64_t n = 0; n < N; n++) c.labels.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(K))));
  for (int64_t i = 0; i < N * K; i++) c.values.push_back(static_cast<float>(random.below(5)) / 4);
  if (c.weighted)
    for (int64_t k = 0; k < K; k++) c.weights.push_back(0.5f + static_cast<float>(k % 7) / 4);
  if (lists)
    for (int64_t n = 0; n < N; n += n % 5 + 2) c.groups.push_back(static_cast<int32_t>(n));
  if (lists) c.groups.push_back(static_cast<int32_t>(N));
  return c;
}

std::vector<LabelLossCase> label_loss_cases(Shape shape) {
  std::vector<LabelLossCase> cases;
  for (const bool weighted : {false, true}) {
    for (const double smoothing : {0.0, 0.125})
      cases.push_back(with_targets({LabelLoss::softmax, shape, weighted, smoothing}));
    cases.push_back(with_targets({LabelLoss::sigmoid, shape, weighted}));
  }
  cases.push_back(with_targets({LabelLoss::squared, shape}));
  cases.push_back(with_targets({LabelLoss::pairwise, {shape.rows + 3, 1}}));  // some rows of a list are unequal
  cases.push_back(with_targets({LabelLoss::listwise, {shape.rows, 1}}));
  return cases;
}

template <class Real>
std::vector<Real> case_logits(const LabelLossCase& c) {
  return testing::normal<Real>(c.shape.rows * c.shape.cols, 3, 3);
}

template <class Real>
struct LabelLossResult {
  double loss = 0;
  std::vector<Real> dz;

  bool operator==(const LabelLossResult&) const = default;
};

template <class Real>
LabelLossResult<Real> run_label_loss(const LabelLossCase& c, const std::vector<Real>& logits) {
  Padded<Real> z(c.shape, logits),
      dz(c.shape, std::vector<Real>(logits.size(), std::numeric_limits<Real>::quiet_NaN()));
  const double loss = label_loss<Real>(c.kind, c.targets(), z.view(), dz.view());
  dz.expect_gaps_untouched();
  const double alone = label_loss<Real>(c.kind, c.targets(), z.view(), {});
  EXPECT_TRUE(alone == loss || std::isnan(loss));
  return {loss, dz.values()};
}

template <class Real>
LabelLossResult<Real> run_label_reference(const LabelLossCase& c) {
  const std::vector<Real> z = case_logits<Real>(c);
  LabelLossResult<Real> result{0, std::vector<Real>(z.size())};
  result.loss = static_cast<double>(reference::label_loss<Real>(
      c.kind, c.targets(), {z.data(), c.shape.rows, c.shape.cols}, {result.dz.data(), c.shape.rows, c.shape.cols}));
  return result;
}

// The kernel computes in double precision: the error of a gradient is that of one rounding.
TEST(LabelLoss, KernelEqualsTheReferenceInDouble) {
  for (const Shape shape : {Shape{1, 1}, {1, 2}, {5, 3}, {70, 17}, {200, 40}})
    for (const LabelLossCase& c : label_loss_cases(shape)) {
      SCOPED_TRACE(::testing::PrintToString(c));
      const LabelLossResult<double> exact = run_label_reference<double>(c);
      const LabelLossResult<double> wide = run_label_loss<double>(c, case_logits<double>(c));
      const LabelLossResult<float> result = run_label_loss<float>(c, case_logits<float>(c));
      EXPECT_NEAR(wide.loss, exact.loss, 1e-12 * exact.loss);
      EXPECT_NEAR(result.loss, exact.loss, 1e-12 * exact.loss);
      EXPECT_LE(testing::relative_error(wide.dz, exact.dz), 1e-12);
      EXPECT_LE(testing::relative_error(result.dz, exact.dz), 0x1p-24);
    }
}

TEST(LabelLoss, GradientsMatchFiniteDifferences) {
  for (const LabelLossCase& c : label_loss_cases({9, 4})) {
    SCOPED_TRACE(::testing::PrintToString(c));
    std::vector<double> z = case_logits<double>(c);
    const LabelLossResult<double> result = run_label_loss<double>(c, z);
    testing::expect_gradient(
        z, result.dz,
        [&] {
          return label_loss<double>(c.kind, c.targets(), {z.data(), c.shape.rows, c.shape.cols}, {});
        },
        1e-8);
  }
}

TEST(LabelLoss, DoesNotDependOnTheNumberOfThreads) {
  for (const LabelLossCase& c : label_loss_cases({300, 20})) {
    const auto result = [&] { return run_label_loss<float>(c, case_logits<float>(c)); };
    EXPECT_EQ(testing::with_threads(1, result), testing::with_threads(3, result)) << ::testing::PrintToString(c);
  }
}

// Known answers

template <class Real>
void expect_known_answer(const nlohmann::json& known, int64_t rows) {
  LabelLossCase c{LabelLoss::automatic, {rows, known["labels"]}};
  const std::string kind = known["kind"];
  for (size_t i = 0; i < names_of(LabelLoss()).size(); i++)
    if (names_of(LabelLoss())[i] == kind) c.kind = static_cast<LabelLoss>(i);
  c.smoothing = known.value("smoothing", 0.0);
  c.labels = known.value("targets", std::vector<int32_t>());
  c.groups = known.value("groups", std::vector<int32_t>());
  c.values = known.value("values", std::vector<float>());
  c.weights = known.value("weights", std::vector<float>());
  const LabelLossResult<Real> result = run_label_loss<Real>(c, known["z"]);
  const auto N = static_cast<double>(rows);
  std::vector<double> gradient = known["dz"];
  for (double& value : gradient) value *= N;
  EXPECT_NEAR(result.loss, N * known["loss"].get<double>(), 1e-5 * result.loss);
  EXPECT_LE(testing::relative_error(result.dz, gradient), 1e-5);
}

TEST(LabelLoss, AgreesWithPyTorchAndSentenceTransformers) {
  std::ifstream file(QKV_GOLDEN_DIR "/text_losses/losses.json");
  const nlohmann::json known = nlohmann::json::parse(file);
  ASSERT_GE(known["labels"].size(), 11U);
  for (const nlohmann::json& loss : known["labels"]) {
    SCOPED_TRACE(loss["name"].get<std::string>());
    expect_known_answer<double>(loss, known["rows"]);
    expect_known_answer<float>(loss, known["rows"]);
  }
}

// Special cases

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(LabelLoss, LabelsWithALogitOfMinusInfinityAreImpossible) {
  const LabelLossCase c{LabelLoss::softmax, {1, 3}, false, 0, {1}};
  EXPECT_EQ(run_label_loss<float>(c, {-kInfinity, 5, -kInfinity}), (LabelLossResult<float>{0, {0, 0, 0}}));
  const LabelLossResult<float> result = run_label_loss<float>(c, {2, 2, -kInfinity});
  EXPECT_NEAR(result.loss, std::log(2), 1e-15);
  EXPECT_EQ(result.dz, (std::vector<float>{0.5, -0.5, 0}));
  EXPECT_EQ(run_label_loss<float>(c, {2, -kInfinity, 2}).loss, kInfinity);
}

TEST(LabelLoss, InfiniteLogitsOfTheRightSignHaveNoLoss) {
  const LabelLossCase c{LabelLoss::sigmoid, {1, 2}, false, 0, {}, {}, {1, 0}};
  EXPECT_EQ(run_label_loss<float>(c, {kInfinity, -kInfinity}), (LabelLossResult<float>{0, {0, 0}}));
  EXPECT_EQ(run_label_loss<float>(c, {-kInfinity, -kInfinity}), (LabelLossResult<float>{kInfinity, {-0.5, 0}}));
  EXPECT_EQ(run_label_loss<float>(c, {200, 200}).loss, 100);
}

TEST(LabelLoss, ListsWithAnInfiniteLogit) {
  const LabelLossCase pairs{LabelLoss::pairwise, {3, 1}, false, 0, {}, {0, 3}, {1, 0, 0}};
  EXPECT_EQ(run_label_loss<float>(pairs, {kInfinity, 0, 1}), (LabelLossResult<float>{0, {0, 0, 0}}));
  EXPECT_EQ(run_label_loss<float>(pairs, {-kInfinity, 0, 1}).loss, kInfinity);
  const LabelLossCase list{LabelLoss::listwise, {2, 1}, false, 0, {}, {0, 2}, {1000, 0}};
  EXPECT_EQ(run_label_loss<float>(list, {3, -kInfinity}), (LabelLossResult<float>{0, {0, 0}}));
}

TEST(LabelLoss, RowsOfOneRelevanceHaveNoOrder) {
  const LabelLossCase c{LabelLoss::pairwise, {4, 1}, false, 0, {}, {0, 1, 4}, {1, 0.5, 0.5, 0.5}};
  EXPECT_EQ(run_label_loss<float>(c, {1, 2, 3, 4}), (LabelLossResult<float>{0, {0, 0, 0, 0}}));
}

TEST(LabelLoss, OneLabelAndOneRowHaveNoChoice) {
  EXPECT_EQ(run_label_loss<float>({LabelLoss::softmax, {1, 1}, false, 0.5, {0}}, {7}),
            (LabelLossResult<float>{0, {0}}));
  EXPECT_EQ(run_label_loss<float>({LabelLoss::listwise, {1, 1}, false, 0, {}, {0, 1}, {3}}, {7}),
            (LabelLossResult<float>{0, {0}}));
}

TEST(LabelLoss, LossOfALogitThatIsNaNIsNaN) {
  for (const LabelLossCase& c : label_loss_cases({6, 3})) {
    std::vector<float> z = case_logits<float>(c);
    z[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(run_label_loss<float>(c, z).loss)) << ::testing::PrintToString(c);
  }
}

TEST(LabelLoss, NamesWhatDoesNotFit) {
  const auto error = [](const LabelLossCase& c) {
    return testing::error_of([&] { run_label_loss<float>(c, case_logits<float>(c)); });
  };
  expect_contains(error({LabelLoss::automatic, {2, 2}}), "kind: automatic");
  expect_contains(error({LabelLoss::softmax, {0, 2}}), "z: 0 rows");
  expect_contains(error({LabelLoss::softmax, {2, 2}, false, 0, {0}}), "labels: 1 for 2 rows");
  expect_contains(error({LabelLoss::softmax, {2, 2}, false, 0, {0, 2}}), "labels: 2 (must be between 0 and 1)");
  expect_contains(error({LabelLoss::softmax, {2, 2}, false, 0, {0, -1}}), "labels: -1 (must be between 0 and 1)");
  expect_contains(error({LabelLoss::sigmoid, {2, 2}, false, 0, {}, {}, {1}}), "values: 1 for 4 logits");
  expect_contains(error({LabelLoss::sigmoid, {1, 2}, false, 0, {}, {}, {1, 1}, {1}}), "weights: 1 for 2 labels");
  expect_contains(error({LabelLoss::pairwise, {1, 2}, false, 0, {}, {0, 1}, {1, 1}}), "z: 2 logits in a row");
  for (const std::vector<int32_t>& groups :
       {std::vector<int32_t>{}, {0}, {0, 1}, {1, 2}, {0, 1, 1, 2}, {0, 3, 2}, {0, 2, 2}})
    expect_contains(error({LabelLoss::listwise, {2, 1}, false, 0, {}, groups, {1, 1}}),
                    "groups: offsets that increase from 0 to 2");
}

}  // namespace
}  // namespace qkv
