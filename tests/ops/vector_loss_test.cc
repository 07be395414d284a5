// Losses of vectors of texts: kernel against reference, gradients against finite differences, and both against
// sentence-transformers.
#include "ops/vector_loss.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ops/reference/vector_loss_reference.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

using testing::expect_contains;
using testing::Padded;
using testing::Shape;

// A loss, and the shape of what it reads.
struct VectorLossCase {
  VectorLossOptions options;
  int64_t columns = 2, N = 5, d = 7, teacher_rows = 0;

  Shape shape() const { return {columns * N, d}; }
};

void PrintTo(const VectorLossCase& c, std::ostream* out) {
  *out << names_of(c.options.kind)[static_cast<size_t>(c.options.kind)] << " of " << c.columns << " x " << c.N << " x "
       << c.d << (c.options.similarity == Similarity::dot ? ", dot" : "") << (c.options.symmetric ? ", symmetric" : "")
       << (c.options.widths.empty() ? "" : ", several widths") << (c.teacher_rows == c.N ? ", one teacher" : "");
}

// Every loss with every option.
std::vector<VectorLossCase> vector_loss_cases(int64_t N, int64_t d) {
  const std::vector<int64_t> narrow = {1 + d / 2, d};
  std::vector<VectorLossCase> cases;
  for (const Similarity similarity : {Similarity::cosine, Similarity::dot})
    for (const std::vector<int64_t>& widths : {std::vector<int64_t>(), narrow}) {
      for (const int64_t columns : {2, 4})
        for (const bool symmetric : {false, true})
          cases.push_back({{VectorLoss::info_nce, similarity, symmetric, widths}, columns, N, d});
      cases.push_back({{VectorLoss::cosent, similarity, false, widths}, 2, N, d});
      cases.push_back({{VectorLoss::cosine, similarity, false, widths}, 2, N, d});
      cases.push_back({{VectorLoss::margin_mse, similarity, false, widths}, 3, N, d});
    }
  for (const std::vector<int64_t>& widths : {std::vector<int64_t>(), narrow}) {
    cases.push_back({{VectorLoss::distill, Similarity::cosine, false, widths}, 1, N, d, N});
    cases.push_back({{VectorLoss::distill, Similarity::cosine, false, widths}, 3, N, d, N});
    cases.push_back({{VectorLoss::distill, Similarity::cosine, false, widths}, 3, N, d, 3 * N});
  }
  return cases;
}

// Random vectors of about the length that makes their dot products as large as cosines.
template <class Real>
std::vector<Real> case_vectors(const VectorLossCase& c) {
  return testing::normal<Real>(c.columns * c.N * c.d, 1, 1 / std::sqrt(static_cast<double>(c.d)));
}

template <class Real>
std::vector<Real> case_teacher(const VectorLossCase& c) {
  return testing::normal<Real>(c.teacher_rows * c.d, 2, 1 / std::sqrt(static_cast<double>(c.d)));
}

// Some scores are equal.
std::vector<float> case_scores(const VectorLossCase& c) {
  std::vector<float> scores;
  for (int64_t i = 0; i < c.N; i++) scores.push_back(static_cast<float>(i * 7 % 5) / 4);
  return scores;
}

template <class Real>
struct VectorLossResult {
  double loss = 0, dlog_scale = 0;
  std::vector<Real> dv;

  bool operator==(const VectorLossResult&) const = default;
};

constexpr double kLogScale = 1.5;

// The op's result for vectors in `v`.
template <class Real>
VectorLossResult<Real> run_vector_loss(const VectorLossCase& c, Matrix<const Real> v, const std::vector<float>& scores,
                                       double log_scale = kLogScale) {
  testing::SpoiledArena arena(int64_t{1} << 20);
  const std::vector<Real> teacher = case_teacher<Real>(c);
  Padded<Real> dv(c.shape(), std::vector<Real>(to_size(v.rows * v.cols), std::numeric_limits<Real>::quiet_NaN()));
  const TextVectors<Real> texts{v, c.columns, scores, {teacher.data(), c.teacher_rows, c.d}};
  VectorLossResult<Real> result{0, 0.25, {}};
  result.loss = vector_loss<Real>(c.options, texts, log_scale, dv.view(), &result.dlog_scale, arena);
  result.dlog_scale -= 0.25;  // the gradient is added
  dv.expect_gaps_untouched();
  result.dv = dv.values();
  EXPECT_EQ(arena.used(), 0U);
  return result;
}

template <class Real>
VectorLossResult<Real> run_vector_reference(const VectorLossCase& c) {
  const std::vector<Real> v = case_vectors<Real>(c), teacher = case_teacher<Real>(c);
  const std::vector<float> scores = case_scores(c);
  VectorLossResult<Real> result{0, 0, std::vector<Real>(v.size())};
  const TextVectors<Real> texts{
      {v.data(), c.columns * c.N, c.d}, c.columns, scores, {teacher.data(), c.teacher_rows, c.d}};
  Real dlog_scale = 0;
  result.loss = static_cast<double>(reference::vector_loss<Real>(c.options, texts, static_cast<Real>(kLogScale),
                                                                 {result.dv.data(), c.columns * c.N, c.d}, dlog_scale));
  result.dlog_scale = static_cast<double>(dlog_scale);
  return result;
}

// Scores and gradients of scores are sums whose terms are at most the scale, so their roundings are relative to it.
TEST(VectorLoss, KernelIsAsAccurateAsTheReference) {
  testing::for_each_isa([] {
    for (const Shape shape : {Shape{1, 1}, {2, 3}, {5, 16}, {33, 17}, {70, 50}})
      for (const VectorLossCase& c : vector_loss_cases(shape.rows, shape.cols)) {
        SCOPED_TRACE(::testing::PrintToString(c));
        const VectorLossResult<double> exact = run_vector_reference<double>(c);
        const VectorLossResult<float> plain = run_vector_reference<float>(c);
        Padded<float> v(c.shape(), case_vectors<float>(c));
        const VectorLossResult<float> fast = run_vector_loss<float>(c, v.view(), case_scores(c));
        const double summed = std::exp(kLogScale) * static_cast<double>(c.N);
        testing::expect_as_accurate({static_cast<float>(fast.loss), static_cast<float>(fast.dlog_scale)},
                                    {static_cast<float>(plain.loss), static_cast<float>(plain.dlog_scale)},
                                    {exact.loss, exact.dlog_scale}, 3, summed);
        testing::expect_as_accurate(fast.dv, plain.dv, exact.dv, 3, std::exp(kLogScale));
      }
  });
}

TEST(VectorLoss, DoubleKernelEqualsTheReference) {
  for (const VectorLossCase& c : vector_loss_cases(6, 9)) {
    SCOPED_TRACE(::testing::PrintToString(c));
    const VectorLossResult<double> exact = run_vector_reference<double>(c);
    Padded<double> v(c.shape(), case_vectors<double>(c));
    const VectorLossResult<double> result = run_vector_loss<double>(c, v.view(), case_scores(c));
    EXPECT_NEAR(result.loss, exact.loss, 1e-12 * exact.loss);
    EXPECT_NEAR(result.dlog_scale, exact.dlog_scale, 1e-12 * exact.loss);
    EXPECT_LE(testing::relative_error(result.dv, exact.dv), 1e-13);
  }
}

TEST(VectorLoss, GradientsMatchFiniteDifferences) {
  for (const VectorLossCase& c : vector_loss_cases(5, 4)) {
    SCOPED_TRACE(::testing::PrintToString(c));
    std::vector<double> v = case_vectors<double>(c), log_scale = {kLogScale};
    const std::vector<double> teacher = case_teacher<double>(c);
    const std::vector<float> scores = case_scores(c);
    const TextVectors<double> texts{
        {v.data(), c.columns * c.N, c.d}, c.columns, scores, {teacher.data(), c.teacher_rows, c.d}};
    const VectorLossResult<double> result = run_vector_loss<double>(c, texts.v, scores);
    Arena arena;
    const auto loss = [&] { return vector_loss<double>(c.options, texts, log_scale[0], arena); };
    EXPECT_EQ(loss(), result.loss);
    testing::expect_gradient(v, result.dv, loss, 1e-7);
    testing::expect_gradient(log_scale, std::vector<double>{result.dlog_scale}, loss, 1e-7);
  }
}

TEST(VectorLoss, DoesNotDependOnTheNumberOfThreads) {
  testing::for_each_isa([] {
    for (const VectorLossCase& c : vector_loss_cases(300, 40)) {
      const auto result = [&] {
        Padded<float> v(c.shape(), case_vectors<float>(c));
        return run_vector_loss<float>(c, v.view(), case_scores(c));
      };
      EXPECT_EQ(testing::with_threads(1, result), testing::with_threads(3, result)) << ::testing::PrintToString(c);
    }
  });
}

// The scores of this many anchors do not fit in one block. Errors of the 1,100 scores of a row, of one rounding of the
// scale each, are added in its loss and gradient.
TEST(VectorLoss, BlocksOfAnchorsAddUp) {
  const VectorLossCase c{{VectorLoss::info_nce, Similarity::cosine, true}, 2, 1100, 4};
  const VectorLossResult<double> exact = run_vector_reference<double>(c);
  Padded<float> v(c.shape(), case_vectors<float>(c));
  const VectorLossResult<float> result = run_vector_loss<float>(c, v.view(), case_scores(c));
  EXPECT_NEAR(result.loss, exact.loss, 1e-6 * exact.loss);
  EXPECT_NEAR(result.dlog_scale, exact.dlog_scale, 1e-6 * exact.loss);
  EXPECT_LE(testing::relative_error(result.dv, exact.dv), 1e-5);
}

// Known answers

std::vector<float> floats(const nlohmann::json& numbers) { return numbers.get<std::vector<float>>(); }

template <class Real>
void expect_known_answer(const nlohmann::json& known, int64_t rows) {
  VectorLossOptions options;
  const std::string kind = known["kind"];
  for (size_t i = 0; i < names_of(VectorLoss()).size(); i++)
    if (names_of(VectorLoss())[i] == kind) options.kind = static_cast<VectorLoss>(i);
  if (known.value("similarity", "cosine") == "dot") options.similarity = Similarity::dot;
  options.symmetric = known.value("symmetric", false);
  options.widths = known["widths"].get<std::vector<int64_t>>();
  const int64_t columns = known["columns"], width = known["width"];
  const std::vector<Real> v = known["v"], teacher = known["teacher"];
  const std::vector<float> scores = floats(known["scores"]);
  std::vector<Real> dv(v.size());
  Arena arena;
  double dlog_scale = 0;
  const double loss = vector_loss<Real>(
      options,
      {{v.data(), columns * rows, width}, columns, scores, {teacher.data(), std::ssize(teacher) / width, width}},
      known["log_scale"], {dv.data(), columns * rows, width}, &dlog_scale, arena);
  const auto N = static_cast<double>(rows);
  std::vector<double> gradient = known["dv"];
  for (double& value : gradient) value *= N;
  EXPECT_NEAR(loss, N * known["loss"].get<double>(), 1e-5 * loss);
  EXPECT_LE(testing::relative_error(dv, gradient), 1e-5);
  EXPECT_NEAR(dlog_scale, N * known["dlog_scale"].get<double>(), 1e-5 * loss);
}

TEST(VectorLoss, AgreesWithSentenceTransformers) {
  std::ifstream file(QKV_GOLDEN_DIR "/text_losses/losses.json");
  const nlohmann::json known = nlohmann::json::parse(file);
  ASSERT_GE(known["vectors"].size(), 14U);
  for (const nlohmann::json& loss : known["vectors"]) {
    SCOPED_TRACE(loss["name"].get<std::string>());
    expect_known_answer<double>(loss, known["rows"]);
    expect_known_answer<float>(loss, known["rows"]);
  }
}

// Special cases

// The result for the vectors of a case, which are given.
VectorLossResult<float> loss_of_vectors(const VectorLossCase& c, const std::vector<float>& v,
                                        const std::vector<float>& scores = {}, double log_scale = kLogScale) {
  return run_vector_loss<float>(c, {v.data(), c.columns * c.N, c.d}, scores, log_scale);
}

TEST(VectorLoss, OneRowHasNoOtherCandidates) {
  const VectorLossResult<float> alone = loss_of_vectors({{VectorLoss::info_nce}, 2, 1, 2}, {3, 4, -1, 2});
  EXPECT_EQ(alone, (VectorLossResult<float>{0, 0, {0, 0, 0, 0}}));
  const VectorLossResult<float> order = loss_of_vectors({{VectorLoss::cosent}, 2, 1, 2}, {3, 4, -1, 2}, {0.5});
  EXPECT_EQ(order, (VectorLossResult<float>{0, 0, {0, 0, 0, 0}}));
  // Cosines 1 of the positive and −1 of the negative.
  const VectorLossResult<float> chosen =
      loss_of_vectors({{VectorLoss::info_nce}, 3, 1, 2}, {3, 4, 6, 8, -3, -4}, {}, std::log(0.5));
  EXPECT_NEAR(chosen.loss, std::log1p(std::exp(-1.0)), 1e-6);
}

TEST(VectorLoss, EqualScoresHaveNoOrder) {
  const VectorLossCase c{{VectorLoss::cosent}, 2, 6, 5};
  const VectorLossResult<float> result = loss_of_vectors(c, case_vectors<float>(c), std::vector<float>(6, 0.5f));
  EXPECT_EQ(result, (VectorLossResult<float>{0, 0, std::vector<float>(60)}));
}

TEST(VectorLoss, VectorsOfZerosHaveNoDirection) {
  for (const VectorLossCase& c : vector_loss_cases(4, 5)) {
    SCOPED_TRACE(::testing::PrintToString(c));
    if (c.options.similarity == Similarity::dot || c.options.kind == VectorLoss::distill) continue;
    std::vector<float> v = case_vectors<float>(c);
    std::fill_n(v.begin(), 5, 0.0f);
    std::fill_n(v.begin() + c.N * 5 + 5, 5, 1e-20f);
    const VectorLossResult<float> result = loss_of_vectors(c, v, case_scores(c));
    EXPECT_TRUE(std::isfinite(result.loss));
    for (const float value : result.dv) EXPECT_LE(std::abs(value), 1e3f);
    EXPECT_EQ(std::vector<float>(result.dv.begin(), result.dv.begin() + 5), std::vector<float>(5));
    EXPECT_GT(testing::max_error(result.dv, std::vector<float>(result.dv.size())), 0);
  }
}

// The similarity is 0 wherever one of the vectors is 0: −log of one in four, for one of four anchors.
TEST(VectorLoss, AnchorOfZerosHasEqualScores) {
  const VectorLossCase c{{VectorLoss::info_nce}, 2, 4, 4};
  std::vector<float> v(32);
  for (size_t i = 0; i < 4; i++) v[i * 5] = v[16 + i * 5] = 2;  // each finds its positive, cosine 1, others 0
  const double scale = 30;
  const double others = std::log1p(3 * std::exp(-scale));
  EXPECT_NEAR(loss_of_vectors(c, v, {}, std::log(scale)).loss, 4 * others, 1e-6);
  v[0] = 0;
  EXPECT_NEAR(loss_of_vectors(c, v, {}, std::log(scale)).loss, std::log(4.0) + 3 * others, 1e-6);
}

TEST(VectorLoss, LargeScalesDoNotOverflow) {
  for (const VectorLoss kind : {VectorLoss::info_nce, VectorLoss::cosent}) {
    const VectorLossCase c{{kind}, 2, 20, 5};
    const VectorLossResult<float> result = loss_of_vectors(c, case_vectors<float>(c), case_scores(c), std::log(1e6));
    EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_GT(result.loss, 1e5);
    for (const float value : result.dv) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(VectorLoss, LossOfVectorsThatAreNotFiniteIsNotFinite) {
  for (const float value : {HUGE_VALF, std::numeric_limits<float>::quiet_NaN()})
    for (const VectorLossCase& c : vector_loss_cases(4, 5)) {
      std::vector<float> v = case_vectors<float>(c);
      v[7] = value;
      EXPECT_FALSE(std::isfinite(loss_of_vectors(c, v, case_scores(c)).loss)) << ::testing::PrintToString(c);
    }
}

TEST(VectorLoss, NamesWhatDoesNotFit) {
  const auto error = [](const VectorLossCase& c, const std::vector<float>& scores) {
    return testing::error_of([&] { loss_of_vectors(c, case_vectors<float>(c), scores); });
  };
  expect_contains(error({{VectorLoss::automatic}}, {}), "kind: automatic");
  expect_contains(error({{VectorLoss::cosent}, 3}, {0, 0, 0, 0, 0}), "columns: 3 (the loss reads 2)");
  expect_contains(error({{VectorLoss::margin_mse}, 2}, {0, 0, 0, 0, 0}), "columns: 2 (the loss reads 3)");
  expect_contains(error({{VectorLoss::info_nce}, 1}, {}), "columns: 1 (the loss reads at least 2)");
  expect_contains(error({{VectorLoss::info_nce}, 2, 0}, {}), "v: 0 rows");
  expect_contains(error({{VectorLoss::cosine}}, {0, 0, 0}), "scores: 3 for 5 rows");
  expect_contains(error({{VectorLoss::cosent}}, {0, 0, 0, NAN, 0}), "scores: nan in row 3");
  expect_contains(error({{VectorLoss::distill}}, {}), "teacher: 0 vectors of 7 components");
  expect_contains(error({{VectorLoss::info_nce, Similarity::cosine, false, {4, 8}}}, {}),
                  "widths: 8 (must be between 1 and 7)");
  expect_contains(error({{VectorLoss::info_nce, Similarity::cosine, false, {0}}}, {}), "widths: 0");
}

}  // namespace
}  // namespace qkv
