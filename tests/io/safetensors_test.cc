// safetensors: round trips, the exact bytes, and every kind of broken file.
#include "io/weights/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_if_any;
using testing::error_of;
using testing::expect_contains;
using testing::spill;
using testing::TempDir;

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};
const std::vector<uint8_t> kMask = {1, 0, 1};

std::vector<NamedTensor> sample() {
  return {{"b.weight", f32_tensor({2, 3}, kValues)},
          {"mask", {DType::u8, {3}, std::as_bytes(std::span(kMask))}},
          {"a \"é\"", f32_tensor({}, std::span(kValues).first(1))},
          {"nothing", f32_tensor({0, 7}, {})}};
}

std::string file_bytes(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
}

// The error that opening the file gives, without its path; "" for a file that opens, which is read to its last byte.
std::string error_in_file(const std::string& path) {
  const std::string error = error_if_any([&] {
    const Safetensors file = Safetensors::open(path);
    size_t total = 0;
    for (const std::string& name : file.names())
      for (std::byte byte : file.find(name)->data) total += to_size(byte) + 1;
    EXPECT_LE(total, 256 * std::filesystem::file_size(path));
  });
  if (error.empty()) return error;
  EXPECT_TRUE(error.starts_with(path + ": ")) << error;
  EXPECT_EQ(error.find('\n'), error.npos);
  return error.substr(path.size() + 2);
}

std::string error_in(const std::string& content) {
  const TempDir directory;
  spill(directory / "f", content);
  return error_in_file(directory / "f");
}

std::string error_in_header(const std::string& header, size_t data_bytes = 8) {
  return error_in(file_bytes(header, std::string(data_bytes, 'x')));
}

TEST(Safetensors, SurviveARoundTrip) {
  const TempDir directory;
  write_safetensors(directory / "f", sample(), {{"step", "7"}, {"format", "pt"}});
  const Safetensors file = Safetensors::open(directory / "f");
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"step", "7"}}));
  EXPECT_EQ(file.names(), (std::vector<std::string>{"b.weight", "mask", "a \"é\"", "nothing"}));
  for (const auto& [name, tensor] : sample()) {
    const TensorView* found = file.find(name);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(found->data, tensor.data));
  }
  EXPECT_EQ(file.find("c"), nullptr);
  std::vector<float> read(6);
  file.read("b.weight", {2, 3}, read);
  EXPECT_EQ(read, kValues);
}

TEST(Safetensors, StayValidWhenTheFileIsMoved) {
  const TempDir directory;
  write_safetensors(directory / "f", sample());
  Safetensors first = Safetensors::open(directory / "f");
  const Safetensors second = std::move(first);
  std::vector<float> read(6);
  second.read("b.weight", {2, 3}, read);
  EXPECT_EQ(read, kValues);
}

TEST(Safetensors, AreWrittenAsTheseBytes) {
  const TempDir directory;
  const std::vector<NamedTensor> tensors = sample();
  write_safetensors(directory / "f", std::span(tensors).first(2), {{"z", "1"}, {"y", "\n"}});
  const std::string header = R"({"__metadata__":{"y":"\n","z":"1"},)"
                             R"("b.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                             R"("mask":{"dtype":"U8","shape":[3],"data_offsets":[24,27]}})";
  std::string data(27, '\0');
  std::memcpy(data.data(), kValues.data(), 24);
  std::memcpy(data.data() + 24, kMask.data(), 3);
  const size_t padding = 63 - (8 + header.size() - 1) % 64;
  EXPECT_EQ(read_file(directory / "f", 10000), file_bytes(header + std::string(padding, ' '), data));
}

TEST(Safetensors, MayBeEmpty) {
  const TempDir directory;
  write_safetensors(directory / "f", {});
  EXPECT_TRUE(Safetensors::open(directory / "f").names().empty());
  EXPECT_EQ(error_in_header("{}", 0), "");
}

TEST(Safetensors, ReadingAnotherShapeOrTypeIsAnError) {
  const TempDir directory;
  const std::string path = directory / "f";
  write_safetensors(path, sample());
  const Safetensors file = Safetensors::open(path);
  std::vector<float> to(6);
  EXPECT_EQ(error_of([&] {
              file.read("b.weight", {3, 2}, to);
            }),
            path + ": tensor \"b.weight\": must be F32 [3, 2] (is F32 [2, 3])");
  EXPECT_EQ(error_of([&] { file.read("mask", {3}, to); }), path + ": tensor \"mask\": must be F32 [3] (is U8 [3])");
  EXPECT_EQ(error_of([&] { file.read("c", {3}, to); }), path + ": tensor \"c\": is missing (expected F32 [3])");
}

TEST(Safetensors, WritingInvalidTensorsIsAnError) {
  const TempDir directory;
  const auto rejected = [&](std::vector<NamedTensor> tensors, const std::string& part) {
    expect_contains(error_of([&] { write_safetensors(directory / "f", tensors); }), part);
    EXPECT_FALSE(std::filesystem::exists(directory / "f"));
  };
  rejected({{"a", f32_tensor({2, 2}, kValues)}}, "tensor \"a\": F32 [2, 2] with 24 bytes of data");
  rejected({{"a", f32_tensor({-2, -3}, kValues)}}, "tensor \"a\": F32 [-2, -3] overflows");
  rejected({{"a", f32_tensor({6}, kValues)}, {"a", f32_tensor({6}, kValues)}},
           "tensor \"a\": the name is reserved or duplicate");
  rejected({{"__metadata__", f32_tensor({6}, kValues)}}, "the name is reserved or duplicate");
  rejected({{"\xff", f32_tensor({6}, kValues)}}, "is not UTF-8");
}

TEST(Safetensors, TruncatedFilesAreRejected) {
  const TempDir directory;
  const std::string path = directory / "f";
  write_safetensors(path, sample(), {{"step", "7"}});
  const std::string content = read_file(path, 10000);
  EXPECT_EQ(error_in_file(path), "");
  EXPECT_EQ(error_in(content + "x"), "1 bytes at the end belong to no tensor");
  for (size_t size = content.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    EXPECT_NE(error_in_file(path), "") << size;
  }
}

TEST(Safetensors, FlippedBitsAreRejectedOrHarmless) {
  const TempDir directory;
  const std::string path = directory / "f";
  write_safetensors(path, sample(), {{"step", "7"}});
  const std::string content = read_file(path, 10000);
  const size_t header_end = content.find("}}") + 2;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t place, char byte) { file.seekp(static_cast<std::streamoff>(place)).put(byte).flush(); };
  for (size_t place = 0; place < header_end; place++) {
    for (int bit = 0; bit < 8; bit++) {
      put(place, static_cast<char>(content[place] ^ (1 << bit)));
      error_in_file(path);
    }
    put(place, content[place]);
  }
  EXPECT_EQ(error_in_file(path), "");
}

TEST(Safetensors, ErrorsNameTheTensor) {
  const auto header = [](const std::string& tensor) { return "{\"t\":{" + tensor + "}}"; };
  const auto error = [&](const std::string& tensor) { return error_in_header(header(tensor)); };
  EXPECT_EQ(error(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), "");
  EXPECT_EQ(error(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), "tensor \"t\": unknown dtype \"F33\"");
  EXPECT_EQ(error(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"),
            "tensor \"t\": F32 [3] takes 12 bytes, but data_offsets span 8");
  EXPECT_EQ(error(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"),
            "tensor \"t\": data_offsets 8 to 0 are outside the 8 bytes of data");
  EXPECT_EQ(error(R"("dtype":"F32","shape":[2],"data_offsets":[4,12])"),
            "tensor \"t\": data_offsets 4 to 12 are outside the 8 bytes of data");
  EXPECT_EQ(error(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"),
            "tensor \"t\": F32 [4294967296, 4294967296] overflows");
  EXPECT_EQ(error(R"("dtype":"U8","shape":[9223372036854775807,2],"data_offsets":[0,8])"),
            "tensor \"t\": U8 [9223372036854775807, 2] takes 18446744073709551614 bytes, but data_offsets span 8");
  expect_contains(error(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "shape must contain integers");
  expect_contains(error(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "shape must contain integers");
  expect_contains(error(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8])"),
                  "shape must contain integers");
  expect_contains(error(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), "shape must be an array");
  expect_contains(error(R"("dtype":"F32","shape":[2],"data_offsets":[0])"),
                  "data_offsets must have 2 elements (has 1)");
  expect_contains(error(R"("dtype":"F32","shape":[2])"), "data_offsets must be an array");
  expect_contains(error(R"("dtype":3,"shape":[2],"data_offsets":[0,8])"), "dtype must be a string");
  expect_contains(error(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)"), "unknown name \"x\"");
}

TEST(Safetensors, RejectsGapsAndOverlaps) {
  const auto tensor = [](int begin, int end) {
    return R"({"dtype":"U8","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  const auto error = [&](const std::string& a, const std::string& b) {
    return error_in_header("{\"a\":" + a + ",\"b\":" + b + "}");
  };
  EXPECT_EQ(error(tensor(5, 8), tensor(0, 5)), "");
  EXPECT_EQ(error(tensor(0, 0), tensor(0, 8)), "");
  EXPECT_EQ(error(tensor(0, 8), tensor(0, 0)), "");
  EXPECT_EQ(error(tensor(0, 8), tensor(8, 8)), "");
  EXPECT_EQ(error(tensor(0, 5), tensor(4, 8)), "tensor \"b\": data must begin at byte 5 (begin at 4): tensors overlap");
  EXPECT_EQ(error(tensor(0, 8), tensor(0, 8)), "tensor \"b\": data must begin at byte 8 (begin at 0): tensors overlap");
  EXPECT_EQ(error(tensor(0, 8), tensor(3, 3)), "tensor \"b\": data must begin at byte 8 (begin at 3): tensors overlap");
  EXPECT_EQ(error(tensor(0, 4), tensor(5, 8)),
            "tensor \"b\": data must begin at byte 4 (begin at 5): tensors leave a gap");
  EXPECT_EQ(error(tensor(1, 4), tensor(4, 8)),
            "tensor \"a\": data must begin at byte 0 (begin at 1): tensors leave a gap");
  EXPECT_EQ(error(tensor(0, 4), tensor(4, 7)), "1 bytes at the end belong to no tensor");
}

TEST(Safetensors, ErrorsNameABrokenHeader) {
  expect_contains(error_in(""), "not a safetensors file: has only 0 bytes");
  expect_contains(error_in(std::string(8, '\xff')), "header of 18446744073709551615 bytes in a file of 8");
  expect_contains(error_in_header("[]", 0), "the header does not begin with {");
  expect_contains(error_in_header(" {}", 0), "the header does not begin with {");
  expect_contains(error_in_header("{\"a\"", 0), "not valid JSON at byte ");
  expect_contains(error_in_header("{\"a\":{},\"a\":{}}", 0), "\"a\" stands twice");
  expect_contains(error_in_header("{\"\xff\":{}}", 0), "ill-formed UTF-8");
  expect_contains(error_in_header("{\"a\":1}", 0), "tensor \"a\": must be a JSON object");
  expect_contains(error_in_header("{\"__metadata__\":{\"a\":1}}", 0), "__metadata__ \"a\" is not a string");
  expect_contains(error_in_header("{\"__metadata__\":[]}", 0), "__metadata__ is not a JSON object");
}

TEST(Safetensors, RejectsWhatIsNotARegularFile) {
  const TempDir directory;
  EXPECT_EQ(error_of([&] { Safetensors::open(directory / "no"); }),
            directory.path() + "/no: cannot be opened: No such file or directory");
  expect_contains(error_of([&] { Safetensors::open(directory.path()); }), ": cannot be read: Is a directory");
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  expect_contains(error_of([&] { Safetensors::open(directory / "pipe"); }), "/pipe: is not a regular file");
}

TEST(Safetensors, ReadsFilesOfOtherPrograms) {
  const std::string path = QKV_SHARED_DIR "/cases/torch/mha_self.safetensors";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: ../shared not present";
  const Safetensors file = Safetensors::open(path);
  EXPECT_FALSE(file.metadata().empty());
  const int64_t d = 32;
  std::vector<float> weight(3 * d * d);
  file.read("param.mha.in_proj_weight", {3 * d, d}, weight);
  EXPECT_GT(std::accumulate(weight.begin(), weight.end(), 0.0, [](double sum, float w) { return sum + w * w; }), 0);

  // Written again in the same order, the data are the same bytes.
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file.names()) tensors.push_back({name, *file.find(name)});
  const TempDir directory;
  write_safetensors(directory / "f", tensors, file.metadata());
  const Safetensors copy = Safetensors::open(directory / "f");
  EXPECT_EQ(copy.names(), file.names());
  EXPECT_EQ(copy.metadata(), file.metadata());
  for (const std::string& name : file.names())
    EXPECT_TRUE(std::ranges::equal(copy.find(name)->data, file.find(name)->data)) << name;
}

}  // namespace
}  // namespace qkv
