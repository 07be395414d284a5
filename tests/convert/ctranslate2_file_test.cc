// model.bin: its variables, and every kind of broken file.
#include "convert/formats/ctranslate2_file.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/support/errors.h"
#include "tests/support/foreign_models.h"

namespace qkv {
namespace {

using testing::bytes_of;
using testing::CTranslate2Writer;
using testing::error_if_any;

CTranslate2File parse(const std::string& bytes) {
  return parse_ctranslate2(std::as_bytes(std::span(bytes)), "model.bin");
}
std::string error_in(const std::string& bytes) {
  return error_if_any([&] { parse(bytes); });
}

const testing::ForeignTensor kTensor = {"w", {2, 3}, {1, -2, 3, 4, -5, 6}};

std::string sample(uint32_t version) {
  CTranslate2Writer writer(version, 5);
  writer.add(kTensor, CTranslate2Writer::i8);
  writer.add_attribute("pre_norm", int8_t{1});
  if (version >= 3) writer.add_alias("v", "w");
  return writer.bytes();
}

TEST(CTranslate2File, ReadsEveryVersion) {
  for (uint32_t version = 2; version <= 6; version++) {
    const std::string bytes = sample(version);
    const CTranslate2File file = parse(bytes);
    EXPECT_EQ(file.version, version);
    EXPECT_EQ(file.revision, 5u);
    EXPECT_EQ(file.specification, "TransformerSpec");
    const TensorView& w = file.variables.at("w");
    EXPECT_EQ(w.dtype, DType::i8);
    EXPECT_EQ(w.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(static_cast<int8_t>(w.data[4]), -106);  // −5 · 127 / 6
    EXPECT_EQ(file.variables.at("w_scale").dtype, DType::f32);
    EXPECT_EQ(file.variables.contains("v"), version >= 3);
    EXPECT_EQ(file.variables.contains("v_scale"), version >= 3);
    EXPECT_TRUE(file.variables.at("pre_norm").shape.empty());
  }
}

TEST(CTranslate2File, LimitsTheLengthOfNames) {
  CTranslate2Writer writer(6, 5);
  writer.add_attribute(std::string(256, 'a'), int8_t{1});
  EXPECT_EQ(error_in(writer.bytes()),
            "model.bin: the name of a variable at byte 32 must have at most 256 bytes (has 257)");
  std::string many = sample(6);
  const size_t aliases = many.size() - 2 * (2 + 2) - 4;  // before the number of them, and v and w
  many.replace(aliases, 4, bytes_of(uint32_t{1} << 16));
  EXPECT_EQ(error_in(many), "model.bin: must have at most 65536 variables and aliases (has 65539)");
}

TEST(CTranslate2File, TruncationAnywhereIsAnError) {
  for (const uint32_t version : {2, 6}) {
    const std::string bytes = sample(version);
    for (size_t size = 0; size < bytes.size(); size++)
      EXPECT_TRUE(error_in(bytes.substr(0, size)).starts_with("model.bin: ")) << size;
    EXPECT_EQ(error_in(bytes + "x"), "model.bin: has 1 bytes after the last variable");
  }
}

TEST(CTranslate2File, AnyChangedByteIsAnErrorOrAnotherFile) {
  for (const uint32_t version : {2, 6}) {
    std::string bytes = sample(version);
    for (size_t i = 0; i < bytes.size(); i++)
      for (const int flip : {1, 0x80, 0xFF}) {
        bytes[i] = static_cast<char>(bytes[i] ^ flip);
        const std::string error = error_if_any([&] {
          size_t total = 0;
          for (const auto& [name, tensor] : parse(bytes).variables) total += tensor.data.size();
          EXPECT_LE(total, 2 * bytes.size());  // an alias shows the same bytes again
        });
        EXPECT_TRUE(error.empty() || error.starts_with("model.bin: ")) << error;
        EXPECT_EQ(error.find('\n'), error.npos);
        bytes[i] = static_cast<char>(bytes[i] ^ flip);
      }
  }
}

TEST(CTranslate2File, ErrorsNameTheProblem) {
  EXPECT_EQ(error_in(bytes_of(uint32_t{7}) + std::string(100, '\0')),
            "model.bin: not a CTranslate2 model, or its version is not between 2 and 6 (is 7)");
  EXPECT_EQ(error_in("PK"),
            "model.bin: truncated, or not a CTranslate2 model: the version at byte 0 needs 4 bytes (2 are left)");
  const auto error = [](auto&& fill) {
    CTranslate2Writer writer(6, 7);
    fill(writer);
    return error_in(writer.bytes());
  };
  EXPECT_EQ(error([](auto& w) {
              w.add_raw("w", {2, 3}, w.f32, std::string(20, 'x'));
            }),
            "model.bin: tensor \"w\": F32 [2, 3] does not match its 20 bytes of data");
  EXPECT_EQ(error([](auto& w) {
              w.add_raw("w", {4294967295, 4294967295, 4294967295}, w.f32, "");
            }),
            "model.bin: tensor \"w\": F32 [4294967295, 4294967295, 4294967295] does not match its 0 bytes of data");
  EXPECT_EQ(error([](auto& w) { w.add_raw("w", std::vector<int64_t>(9, 1), w.i8, "x"); }),
            "model.bin: tensor \"w\": must have at most 8 dimensions (has 9)");
  EXPECT_EQ(error([](auto& w) { w.add(kTensor, w.f32), w.add(kTensor, w.f32); }),
            "model.bin: tensor \"w\": appears twice");
  EXPECT_EQ(error([](auto& w) { w.add_alias("v", "w"); }),
            "model.bin: tensor \"v\": is an alias of \"w\", which is missing");
  EXPECT_EQ(error([](auto& w) { w.add(kTensor, w.f32), w.add_alias("w", "w"); }),
            "model.bin: tensor \"w\": appears twice");
}

}  // namespace
}  // namespace qkv
