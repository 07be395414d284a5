// Stored types as float32, and rows of tensors as parameters.
#include "import/foreign_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "qkv/bfloat16.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_if_any;

template <class T>
TensorView view(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

std::vector<float> read(const Origin& origin) {
  std::vector<float> values(static_cast<size_t>(origin.values.shape[0] * origin.values.shape[1]));
  read_floats(origin, "f", values);
  return values;
}

template <class T>
std::vector<float> read(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values,
                        const std::vector<float>& scales = {}) {
  return read({"t", view(dtype, std::move(shape), values), std::as_bytes(std::span(scales))});
}

TEST(ReadFloats, OfEveryTypeGivesTheNumbers) {
  EXPECT_EQ(read<float>(DType::f32, {1, 2}, {0.1f, -3}), (std::vector<float>{0.1f, -3}));
  EXPECT_EQ(read<double>(DType::f64, {1, 2}, {0.1, -3}), (std::vector<float>{0.1f, -3}));
  EXPECT_EQ(read<bfloat16>(DType::bf16, {1, 2}, {bfloat16(0.5f), bfloat16(-3.0f)}), (std::vector<float>{0.5f, -3}));
  EXPECT_EQ(read<int8_t>(DType::i8, {2, 2}, {127, -127, 1, 2}, {127, 4}), (std::vector<float>{1, -1, 0.25f, 0.5f}));
  EXPECT_EQ(read<int16_t>(DType::i16, {2, 2}, {1000, -500, 1, 2}, {1000}),
            (std::vector<float>{1, -0.5f, 0.001f, 0.002f}));
}

// 1.5, the largest, the smallest normal and the smallest of all, zeros.
TEST(ReadFloats, OfFloat16KnowsSubnormals) {
  EXPECT_EQ(read<uint16_t>(DType::f16, {1, 5}, {0x3E00, 0xFBFF, 0x0400, 0x8001, 0x8000}),
            (std::vector<float>{1.5f, -65504, 0x1p-14f, -0x1p-24f, 0}));
  EXPECT_TRUE(std::signbit(read<uint16_t>(DType::f16, {1, 1}, {0x8000})[0]));
}

TEST(ReadFloats, RefusesWhatIsNotFinite) {
  const std::string message = "f: tensor \"t\": holds a number that is not finite";
  const auto error = [](auto&&... arguments) { return error_if_any([&] { read(arguments...); }); };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(error(DType::f32, Shape{1, 1}, std::vector<float>{NAN}), message);
  EXPECT_EQ(error(DType::f64, Shape{1, 1}, std::vector<double>{1e300}), message);
  EXPECT_EQ(error(DType::f16, Shape{1, 1}, std::vector<uint16_t>{0x7C00}), message);
  EXPECT_EQ(error(DType::i8, Shape{1, 1}, std::vector<int8_t>{1}, std::vector<float>{0}), message);
  EXPECT_EQ(error(DType::i8, Shape{1, 1}, std::vector<int8_t>{0}, std::vector<float>{0}), message);
  EXPECT_EQ(error(DType::i8, Shape{1, 1}, std::vector<int8_t>{1}, std::vector<float>{NAN}), message);
}

class ForeignTensorsTest : public ::testing::Test {
 protected:
  ForeignTensorsTest()
      : tensors("f", {{"a", view(DType::f32, {3, 2}, numbers)},
                      {"i", view(DType::i8, {3, 1}, integers)},
                      {"i_scale", view(DType::f32, {3}, scales)},
                      {"short", view(DType::i16, {2, 1}, shorts)},
                      {"mask", view(DType::u8, {3}, integers)},
                      {"bare", view(DType::i8, {3}, integers)}}) {}

  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6}, scales = {1, 2, 4};
  const std::vector<int8_t> integers = {8, 8, 8};
  const std::vector<int16_t> shorts = {500, -1};
  ForeignTensors tensors;
};

// Sizes without a bound, whose product is zero.
TEST(ForeignTensors, RefuseWhatIsEmpty) {
  ForeignTensors tensors("f", {{"a", {DType::f32, {int64_t{1} << 62, 0}, {}}}});
  const std::string message = "f: tensor \"a\": F32 [4611686018427387904, 0] is empty";
  EXPECT_EQ(error_if_any([&] { tensors.use("p", "a"); }), message);
  EXPECT_EQ(error_if_any([&] { tensors.shape("a", 2); }), message);
}

// There is a scale for each row of the shape in the file.
TEST(ForeignTensors, RefuseAnotherShapeOfRowsWithScales) {
  const std::vector<int8_t> integers(4);
  const std::vector<float> scales = {1, 1};
  ForeignTensors tensors("f", {{"a", view(DType::i8, {2, 2}, integers)}, {"a_scale", view(DType::f32, {2}, scales)}});
  EXPECT_EQ(error_if_any([&] { tensors.use_as("p", "a", {4}); }),
            "f: tensor \"a\": found a scale for each row of I8 [2, 2], wanted I8 [4]");
}

TEST_F(ForeignTensorsTest, RowsBecomeParametersWithTheirScales) {
  tensors.use("p", "a", {1, 3});
  tensors.use("q", "i", {1, 3});
  tensors.use("s", "short");
  const Origins origins = tensors.take();
  EXPECT_EQ(read(origins.at("p")), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(origins.at("p").values.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(read(origins.at("q")), (std::vector<float>{4, 2}));
  EXPECT_EQ(read(origins.at("s")), (std::vector<float>{0.5f, -0.001f}));
}

TEST_F(ForeignTensorsTest, ErrorsNameTheTensor) {
  const auto error = [&](const std::string& name, Rows rows = {}) {
    return error_if_any([&] { tensors.use("p", name, rows); });
  };
  EXPECT_EQ(error("b"), "f: tensor \"b\" is missing");
  EXPECT_EQ(error("mask"), "f: tensor \"mask\": found U8 [3], wanted numbers");
  EXPECT_EQ(error("bare"), "f: tensor \"bare\": I8 [3] without the scale \"bare_scale\"");
  EXPECT_EQ(error("a", {1, 4}), "f: tensor \"a\": found F32 [3, 2], wanted at least 4 rows");
  EXPECT_EQ(error("a"), "");
  EXPECT_EQ(error("i"), "f: tensor \"i\": a second origin of p");
  EXPECT_EQ(error_if_any([&] { tensors.shape("a", 1); }), "f: tensor \"a\": found F32 [3, 2], wanted 1 dimensions");
  EXPECT_EQ(error_if_any([&] { tensors.refuse_others(); }), "f: tensor \"bare\": I8 [3] has no place in the model");
  for (const char* name : {"bare", "mask", "short"}) tensors.let_go(name);
  tensors.refuse_others();
}

}  // namespace
}  // namespace qkv
