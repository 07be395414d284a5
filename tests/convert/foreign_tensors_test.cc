// Stored types become float32, and parts of tensors become parameters.
#include "convert/formats/foreign_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "convert/tensor_map.h"
#include "core/to_size.h"
#include "qkv/bfloat16.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_if_any;

template <class T>
TensorView view(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

// All numbers of an origin.
std::vector<float> read(const Origin& origin) {
  std::vector<float> values(to_size(*byte_count(DType::u8, origin.shape)));
  read_floats(origin, "f", 0, origin.shape[0], values);
  return values;
}

template <class T>
std::vector<float> read(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values,
                        const std::vector<float>& scales = {}) {
  return read({"t", view(dtype, shape, values), std::as_bytes(std::span(scales)), shape, {}});
}

TEST(ReadFloats, ConvertsEveryType) {
  EXPECT_EQ(read<float>(DType::f32, {1, 2}, {0.1f, -3}), (std::vector<float>{0.1f, -3}));
  EXPECT_EQ(read<double>(DType::f64, {1, 2}, {0.1, -3}), (std::vector<float>{0.1f, -3}));
  EXPECT_EQ(read<bfloat16>(DType::bf16, {1, 2}, {bfloat16(0.5f), bfloat16(-3.0f)}), (std::vector<float>{0.5f, -3}));
  EXPECT_EQ(read<int8_t>(DType::i8, {2, 2}, {127, -127, 1, 2}, {127, 4}), (std::vector<float>{1, -1, 0.25f, 0.5f}));
  EXPECT_EQ(read<int16_t>(DType::i16, {2, 2}, {1000, -500, 1, 2}, {1000}),
            (std::vector<float>{1, -0.5f, 0.001f, 0.002f}));
}

// 1.5, the largest number, the smallest normal one, the smallest of all, and zeros.
TEST(ReadFloats, ConvertsSubnormalFloat16) {
  EXPECT_EQ(read<uint16_t>(DType::f16, {1, 5}, {0x3E00, 0xFBFF, 0x0400, 0x8001, 0x8000}),
            (std::vector<float>{1.5f, -65504, 0x1p-14f, -0x1p-24f, 0}));
  EXPECT_TRUE(std::signbit(read<uint16_t>(DType::f16, {1, 1}, {0x8000})[0]));
}

TEST(ReadFloats, RefusesNumbersThatAreNotFinite) {
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

// A 3 by 2 matrix, integers with scales, and tensors that cannot be used.
class ForeignTensorsTest : public ::testing::Test {
 protected:
  ForeignTensorsTest()
      : tensors("f", {{"a", view(DType::f32, {3, 2}, numbers)},
                      {"i", view(DType::i8, {3, 1}, integers)},
                      {"i_scale", view(DType::f32, {3}, scales)},
                      {"short", view(DType::i16, {2, 1}, shorts)},
                      {"mask", view(DType::u8, {3}, integers)},
                      {"bare", view(DType::i8, {3}, integers)}}) {}

  // The origins that a rule gives; the other tensors are ignored.
  Origins origins(TensorRule rule) {
    TensorMap map{.rules = {std::move(rule)}, .unused = {"a", "i", "short", "mask", "bare"}};
    map_tensors(tensors, map);
    return tensors.take();
  }
  std::string error(TensorRule rule) {
    return error_if_any([&] { origins(std::move(rule)); });
  }

  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6}, scales = {1, 2, 4};
  const std::vector<int8_t> integers = {8, 8, 8};
  const std::vector<int16_t> shorts = {500, -1};
  ForeignTensors tensors;
};

// Sizes without a bound, whose product is zero.
TEST(ForeignTensors, RefuseEmptyTensors) {
  ForeignTensors tensors("f", {{"a", {DType::f32, {int64_t{1} << 62, 0}, {}}}});
  const std::string message = "f: tensor \"a\": F32 [4611686018427387904, 0] is empty";
  EXPECT_EQ(error_if_any([&] { map_tensors(tensors, {.rules = {{.theirs = "a", .ours = {"p"}}}}); }), message);
  EXPECT_EQ(error_if_any([&] { tensors.shape("a", 2); }), message);
}

// There is a scale for each row of the shape in the file.
TEST(ForeignTensors, RefuseAnotherShapeOfRowsWithScales) {
  const std::vector<int8_t> integers(4);
  const std::vector<float> scales = {1, 1};
  ForeignTensors tensors("f", {{"a", view(DType::i8, {2, 2}, integers)}, {"a_scale", view(DType::f32, {2}, scales)}});
  const TensorRule rule{.theirs = "a", .ours = {"p"}, .reshape = TensorRule::Reshape{{2, 2}, {4, 1}}};
  EXPECT_EQ(error_if_any([&] { map_tensors(tensors, {.rules = {rule}}); }),
            "f: tensor \"a\": has a scale per row and cannot be read in another shape (is I8 [2, 2])");
}

TEST_F(ForeignTensorsTest, RowsBecomeParametersWithTheirScales) {
  const Origins origins = this->origins({.theirs = "i", .ours = {"x", "y", "z"}});
  EXPECT_EQ(read(origins.at("x")), std::vector<float>{8});
  EXPECT_EQ(read(origins.at("y")), std::vector<float>{4});
  EXPECT_EQ(read(origins.at("z")), std::vector<float>{2});
  EXPECT_EQ(origins.at("z").shape, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(read(this->origins({.theirs = "short", .ours = {"s"}}).at("s")), (std::vector<float>{0.5f, -0.001f}));
}

TEST_F(ForeignTensorsTest, ColumnsBecomeRows) {
  const Origins origins = this->origins({.theirs = "a", .ours = {"x", "y"}, .layout = Layout::columns});
  EXPECT_EQ(read(origins.at("x")), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(read(origins.at("y")), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(origins.at("y").shape, (std::vector<int64_t>{1, 3}));
}

TEST_F(ForeignTensorsTest, LastRowsMayGetTheFirstRowOfAnotherTensor) {
  const Origins origins = this->origins({.theirs = "a", .ours = {"x"}, .first_row = 1, .last_rows = 2, .addend = "a"});
  EXPECT_EQ(read(origins.at("x")), (std::vector<float>{4, 6, 6, 8}));
  EXPECT_EQ(error({.theirs = "a", .ours = {"x"}, .first_row = 1, .last_rows = 1}),
            "f: tensor \"a\": must have 2 rows (has 3)");
}

// Two heads of two rows each: queries, keys and values of the first, then those of the second.
TEST(TensorMap, GroupsOfRowsAlternateBetweenParameters) {
  std::vector<float> rows(12), vector(12);
  for (size_t i = 0; i < 12; i++) rows[i] = static_cast<float>(i), vector[i] = static_cast<float>(100 + i);
  ForeignTensors tensors("f", {{"w", view(DType::f32, {12, 1}, rows)}, {"b", view(DType::f32, {12}, vector)}});
  const std::vector<std::string> weights = {"q.w", "k.w", "v.w"}, biases = {"q.b", "k.b", "v.b"};
  map_tensors(tensors,
              {.rules = {{.theirs = "w", .ours = weights, .groups = 2}, {.theirs = "b", .ours = biases, .groups = 2}}});
  const Origins origins = tensors.take();
  EXPECT_EQ(read(origins.at("q.w")), (std::vector<float>{0, 1, 6, 7}));
  EXPECT_EQ(read(origins.at("k.w")), (std::vector<float>{2, 3, 8, 9}));
  EXPECT_EQ(read(origins.at("v.b")), (std::vector<float>{104, 105, 110, 111}));
  std::vector<float> inner(2);
  read_floats(origins.at("k.w"), "f", 1, 3, inner);
  EXPECT_EQ(inner, (std::vector<float>{3, 8}));
}

TEST_F(ForeignTensorsTest, ErrorsNameTheTensor) {
  const auto error = [&](const std::string& name) {
    return ForeignTensorsTest::error({.theirs = name, .ours = {"p"}});
  };
  EXPECT_EQ(error("b"), "f: tensor \"b\" is missing");
  EXPECT_EQ(error("mask"), "f: tensor \"mask\": must hold numbers (is U8 [3])");
  EXPECT_EQ(error("bare"), "f: tensor \"bare\": I8 [3] without the scale \"bare_scale\"");
  EXPECT_EQ(ForeignTensorsTest::error({.theirs = "a", .ours = {"x", "y"}}),
            "f: tensor \"a\": must hold 2 parts of the same size (is F32 [3, 2])");
  EXPECT_EQ(ForeignTensorsTest::error({.theirs = "a", .ours = {"x"}, .groups = 2}),
            "f: tensor \"a\": must hold 1 parts of the same size in each of 2 groups (is F32 [3, 2])");
  EXPECT_EQ(ForeignTensorsTest::error({.theirs = "i", .ours = {"x"}, .layout = Layout::columns}),
            "f: tensor \"i\": must hold floats (is I8 [3, 1])");
  EXPECT_EQ(ForeignTensorsTest::error({.theirs = "a", .ours = {"x", "x", "y"}}),
            "f: tensor \"a\": x already has an origin");
  EXPECT_EQ(error_if_any([&] { tensors.shape("a", 1); }), "f: tensor \"a\": must have 1 dimensions (is F32 [3, 2])");
}

TEST_F(ForeignTensorsTest, EveryTensorMustBeUsedOrIgnored) {
  tensors.ignore("a");
  EXPECT_EQ(error_if_any([&] { tensors.refuse_unused(); }), "f: tensor \"bare\": I8 [3] is not part of the model");
  for (const char* name : {"bare", "mask", "short", "i"}) tensors.ignore(name);
  tensors.refuse_unused();
}

}  // namespace
}  // namespace qkv
