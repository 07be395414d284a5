// 8-bit weights in a file: quantized weights survive in any order of tensors, and errors name the tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/to_size.h"
#include "io/weights/quantized_weights.h"
#include "io/weights/weights.h"
#include "ops/row_linear.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/numeric.h"
#include "tests/support/rewrite_tensors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::rewrite_tensors;
using testing::TempDir;
using testing::Tensor;

class Int8WeightsTest : public ::testing::Test {
 protected:
  // Matrices of 8 and 12 columns; the feed-forward layers' second, of 10, stay float32.
  Int8WeightsTest() : path(directory / "model.safetensors") {
    config.d_model = 8;
    config.attention.key_width = 6;
    config.attention.value_width = 6;
    model = std::make_unique<Transformer<float>>(config);
    testing::randomize(model->parameters(), 1);
    quantize(model->parameters());
    save_quantized(path, model->parameters());
  }

  std::string error_after(const std::string& name, const std::function<void(Tensor&)>& change) const {
    save_quantized(path, model->parameters());
    rewrite_tensors(path, [&](std::vector<Tensor>& all) { change(*std::ranges::find(all, name, &Tensor::name)); });
    return error_of([&] { load_model(path, config); });
  }

  void expect_same_as_file() const {
    const auto loaded = load_model(path, config);
    const auto &wanted = model->parameters().all(), &found = loaded->parameters().all();
    Arena arena;
    const int8_t* next = nullptr;  // the matrices are neighbours in memory, whatever the file has
    for (size_t i = 0; i < wanted.size(); i++) {
      SCOPED_TRACE(wanted[i].name);
      const Int8Matrix &a = wanted[i].int8, &b = found[i].int8;
      ASSERT_EQ(a.values.data == nullptr, b.values.data == nullptr);
      if (!a.values.data) {
        EXPECT_TRUE(std::equal(wanted[i].value, wanted[i].value + wanted[i].size(), found[i].value));
        continue;
      }
      EXPECT_TRUE(!next || b.values.data == next);
      next = b.values.data + wanted[i].size();
      EXPECT_TRUE(std::equal(a.values.data, a.values.data + wanted[i].size(), b.values.data));
      EXPECT_TRUE(std::equal(a.scale, a.scale + a.values.rows, b.scale));
      EXPECT_TRUE(std::equal(a.sums, a.sums + a.values.rows, b.sums));
      const std::vector<float> x = testing::normal<float>(5 * a.values.cols, 2);
      std::vector<float> y(to_size(5 * a.values.rows)), z(y.size());
      const Matrix<const float> X(x.data(), 5, a.values.cols);
      row_linear(X, a, nullptr, {y.data(), 5, a.values.rows}, arena);
      row_linear(X, b, nullptr, {z.data(), 5, a.values.rows}, arena);
      EXPECT_EQ(y, z);
    }
  }

  TempDir directory;
  std::string path;
  ModelConfig config = testing::small_config();
  std::unique_ptr<Transformer<float>> model;
  const std::string q = "encoder.layers.0.self_attention.q.weight", k = "encoder.layers.0.self_attention.k.weight";
};

TEST_F(Int8WeightsTest, AreWithinHalfAStepOfTheFloats) {
  int64_t matrices = 0, columns_of_10 = 0;
  for (const auto& p : model->parameters().all()) {
    if (p.least_bits <= 8 && p.shape[1] == 10) columns_of_10++;
    EXPECT_EQ(p.int8.values.data != nullptr, p.least_bits <= 8 && p.shape[1] % 4 == 0) << p.name;
    if (!p.int8.values.data) continue;
    matrices++;
    for (int64_t o = 0; o < p.shape[0]; o++)
      for (int64_t i = 0; i < p.shape[1]; i++) {
        const float w = p.matrix()(o, i), s = p.int8.scale[o];
        // Five roundings, each of at most 127 · 2⁻²⁴ steps.
        EXPECT_LE(std::abs(static_cast<float>(p.int8.values(o, i)) * s - w), s * (0.5f + 5 * 127 * 0x1p-24f));
      }
  }
  EXPECT_EQ(columns_of_10, 4);
  EXPECT_EQ(count_int8(model->parameters()), matrices);
  EXPECT_GT(matrices, 20);
}

TEST_F(Int8WeightsTest, SurviveAFile) { expect_same_as_file(); }

TEST_F(Int8WeightsTest, SurviveAFileInAnyOrder) {
  rewrite_tensors(path, [](std::vector<Tensor>& all) { std::ranges::reverse(all); });
  expect_same_as_file();
  rewrite_tensors(path, [](std::vector<Tensor>& all) { std::ranges::sort(all, {}, &Tensor::name); });
  expect_same_as_file();
}

TEST_F(Int8WeightsTest, SurviveAFileWithInterleavedScales) {
  rewrite_tensors(path, [&](std::vector<Tensor>& all) {
    const auto place = [&](const Tensor& t) {  // index of the parameter that it belongs to
      const auto belongs = [&](const auto& p) { return t.name == p.name || t.name == int8_scale(p.name); };
      return std::ranges::find_if(model->parameters().all(), belongs) - model->parameters().all().begin();
    };
    std::ranges::stable_sort(all, {}, place);
  });
  expect_same_as_file();
}

TEST_F(Int8WeightsTest, TakeOneBytePerWeightAndEightPerRow) {
  int64_t bytes = 0;
  for (const auto& p : model->parameters().all())
    bytes += p.int8.values.data ? p.size() + 8 * p.shape[0] : 4 * p.size();
  EXPECT_EQ(weight_bytes(model->parameters()), bytes);
  EXPECT_EQ(weight_bytes(Transformer<float>(config).parameters()), 4 * model->parameters().size());
}

TEST_F(Int8WeightsTest, OfAnotherShapeAreRejected) {
  EXPECT_EQ(error_after(q, [](Tensor& t) { std::swap(t.shape[0], t.shape[1]); }),
            path + ": tensor \"" + q + "\" must be I8 [12, 8] (is I8 [8, 12])");
}

TEST_F(Int8WeightsTest, WithoutAScaleAreRejected) {
  save_quantized(path, model->parameters());
  rewrite_tensors(path, [&](std::vector<Tensor>& all) {
    std::erase_if(all, [&](const Tensor& t) { return t.name == q + "_scale"; });
  });
  EXPECT_EQ(error_of([&] { load_model(path, config); }),
            path + ": tensor \"" + q + "_scale\": is missing (expected F32 [12])");
}

TEST_F(Int8WeightsTest, WithAScaleThatIsNotFiniteAreRejected) {
  for (const float bad : {NAN, INFINITY})
    EXPECT_EQ(error_after(q + "_scale", [&](Tensor& t) { std::memcpy(&t.bytes[4], &bad, 4); }),
              path + ": tensor \"" + q + "_scale\" contains a number that is not finite");
}

TEST_F(Int8WeightsTest, WithOneScalePerMatrixAreRejected) {
  EXPECT_EQ(error_after(q + "_scale",
                        [](Tensor& t) {
                          t.shape = {1};
                          t.bytes.resize(4);
                        }),
            path + ": tensor \"" + q + "_scale\": must be F32 [12] (is F32 [1])");
}

TEST_F(Int8WeightsTest, AreNotMadeIfSumsCouldOverflow) {
  for (const auto& [columns, matrices] : {std::pair{65536, 1}, {65540, 0}}) {
    ParameterList<float> list;
    list.add("w", {1, columns}, Init::zeros(), true);
    list.allocate();
    quantize(list);
    EXPECT_EQ(count_int8(list), matrices);
  }
}

// Neighbours are one matrix, so a product would read past the end.
TEST_F(Int8WeightsTest, MixedWithFloatsAreRejected) {
  save_quantized(path, model->parameters());
  rewrite_tensors(path, [&](std::vector<Tensor>& all) {
    std::erase_if(all, [&](const Tensor& t) { return t.name == k + "_scale"; });
    Tensor& t = *std::ranges::find(all, k, &Tensor::name);
    t.dtype = DType::f32;
    t.bytes.assign(4 * 12 * 8, std::byte{0});
  });
  const std::string error = error_of([&] { load_model(path, config); });
  testing::expect_contains(error, path + ": tensor \"" + k + "\" must be I8 [12, 8] like \"");
}

TEST_F(Int8WeightsTest, RequireAMultipleOf4Columns) {
  rewrite_tensors(path, [&](std::vector<Tensor>& all) {
    Tensor& t = *std::ranges::find_if(all, [](const Tensor& x) { return x.shape == std::vector<int64_t>{8, 10}; });
    t.dtype = DType::i8;
    t.bytes.assign(80, std::byte{1});
    all.push_back({t.name + "_scale", DType::f32, {8}, std::vector<std::byte>(32)});
  });
  testing::expect_contains(error_of([&] { load_model(path, config); }),
                           "the number of 8-bit columns must be a multiple of 4, at most 65536 (is 10)");
}

}  // namespace
}  // namespace qkv
