#include "convert/formats/gguf_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "convert/formats/foreign_tensors.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr uint32_t kOldestGguf = 2, kNewestGguf = 3;
constexpr size_t kMaxGgufName = 1024;        // bytes of a key or of a tensor's name
constexpr uint64_t kMaxGgufItems = 1 << 16;  // pairs or tensors: some 10 MB in memory
constexpr uint32_t kMaxGgufRank = 4;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint32_t kGgufTypes = 13;

// Sizes of the values of a type; 0 for strings and arrays.
constexpr size_t kGgufSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct TensorType {
  uint32_t number;
  const char* name;
  std::optional<DType> dtype = {};
};

// The types of llama.cpp. Those without a dtype are not supported.
constexpr TensorType kTensorTypes[] = {{0, "F32", DType::f32},
                                       {1, "F16", DType::f16},
                                       {2, "Q4_0", DType::q4_0},
                                       {3, "Q4_1", DType::q4_1},
                                       {6, "Q5_0", DType::q5_0},
                                       {7, "Q5_1", DType::q5_1},
                                       {8, "Q8_0", DType::q8_0},
                                       {12, "Q4_K", DType::q4_k},
                                       {13, "Q5_K", DType::q5_k},
                                       {14, "Q6_K", DType::q6_k},
                                       {30, "BF16", DType::bf16},
                                       {9, "Q8_1"},
                                       {10, "Q2_K"},
                                       {11, "Q3_K"},
                                       {15, "Q8_K"},
                                       {16, "IQ2_XXS"},
                                       {17, "IQ2_XS"},
                                       {18, "IQ3_XXS"},
                                       {19, "IQ1_S"},
                                       {20, "IQ4_NL"},
                                       {21, "IQ3_S"},
                                       {22, "IQ2_S"},
                                       {23, "IQ4_XS"},
                                       {24, "I8"},
                                       {25, "I16"},
                                       {26, "I32"},
                                       {27, "I64"},
                                       {28, "F64"},
                                       {29, "IQ1_M"},
                                       {34, "TQ1_0"},
                                       {35, "TQ2_0"},
                                       {39, "MXFP4"}};

DType tensor_type(uint32_t number, const std::string& where) {
  const auto type = std::ranges::find(kTensorTypes, number, &TensorType::number);
  const bool known = type != std::end(kTensorTypes);
  if (known && type->dtype) return *type->dtype;
  std::vector<const char*> names;
  for (const TensorType& supported : kTensorTypes)
    if (supported.dtype) names.push_back(supported.name);
  fail("{}: type must be one of {} (is {})", where, fmt::join(names, ", "),
       known ? type->name : fmt::format("{}", number));
}

template <class T>
T load_at(std::span<const std::byte> bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, const std::string& where) : all_(bytes), where_(where) {}

  template <class T>
  T integer(const char* what) {
    return load_at<T>(take(sizeof(T), what), 0);
  }

  std::span<const std::byte> take(uint64_t count, const char* what) {
    if (count > left())
      fail("{}: truncated, or not a GGUF file: {} at byte {} needs {} bytes ({} are left)", where_, what, place_, count,
           left());
    const std::span<const std::byte> taken = all_.subspan(place_, count);
    place_ += count;
    return taken;
  }

  std::string name(const char* what) {
    const uint64_t size = integer<uint64_t>(what);
    if (size == 0 || size > kMaxGgufName)
      fail("{}: {} at byte {} must have 1 to {} bytes (has {})", where_, what, place_, kMaxGgufName, size);
    const std::span<const std::byte> bytes = take(size, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Reads a number of things that take at least `bytes` bytes each.
  uint64_t count(const char* what, uint64_t bytes, uint64_t most) {
    const uint64_t n = integer<uint64_t>(what);
    if (n > most) fail("{}: {} must be at most {} (is {})", where_, what, most, n);
    if (n > left() / bytes)
      fail("{}: truncated, or not a GGUF file: {} is {}, but only {} bytes are left", where_, what, n, left());
    return n;
  }

  // Reads the values of a type, `count` of them.
  std::span<const std::byte> values(GgufType type, uint64_t count, const std::string& key) {
    const size_t begin = place_, size = kGgufSizes[to_size(type)];
    if (type == GgufType::string) {
      for (uint64_t i = 0; i < count; i++) take(integer<uint64_t>("the size of a string"), "a string");
    } else {
      if (count > left() / size) fail("{}: {}: {} values need more than the {} bytes left", where_, key, count, left());
      take(count * size, "a value");
    }
    return all_.subspan(begin, place_ - begin);
  }

  GgufType type(const std::string& key) {
    const uint32_t number = integer<uint32_t>("a type");
    if (number >= kGgufTypes) fail("{}: {}: type must be below {} (is {})", where_, excerpt(key), kGgufTypes, number);
    return static_cast<GgufType>(number);
  }

  // Skips to a multiple of `alignment`, or to the end of the file.
  void align(uint64_t alignment) { place_ = std::min(all_.size(), (place_ + alignment - 1) / alignment * alignment); }

  size_t left() const { return all_.size() - place_; }
  size_t place() const { return place_; }

 private:
  std::span<const std::byte> all_;
  size_t place_ = 0;
  const std::string& where_;
};

GgufValue read_value(GgufReader& reader, const std::string& key, const std::string& where) {
  GgufValue value;
  value.type = reader.type(key);
  if (value.type == GgufType::array) {
    value.is_array = true;
    value.type = reader.type(key);
    if (value.type == GgufType::array) fail("{}: {}: not supported: an array of arrays", where, excerpt(key));
    value.count = reader.integer<uint64_t>("the size of an array");
  }
  value.bytes = reader.values(value.type, value.count, excerpt(key));
  if (value.type == GgufType::boolean)
    for (const std::byte byte : value.bytes)
      if (byte > std::byte{1}) fail("{}: {}: must be 0 or 1 (is {})", where, excerpt(key), std::to_integer<int>(byte));
  return value;
}

// A tensor and its place in the data.
struct Placed {
  std::string name;
  TensorView tensor;
  uint64_t offset = 0, bytes = 0;
};

Placed read_tensor(GgufReader& reader, const std::string& path) {
  Placed placed;
  placed.name = reader.name("the name of a tensor");
  const std::string where = in_file(path, placed.name);
  const uint32_t rank = reader.integer<uint32_t>("a rank");
  if (rank < 1 || rank > kMaxGgufRank) fail("{}: must have 1 to {} dimensions (has {})", where, kMaxGgufRank, rank);
  std::vector<int64_t>& shape = placed.tensor.shape;
  for (uint32_t i = 0; i < rank; i++) {
    const uint64_t size = reader.integer<uint64_t>("a dimension");
    if (size > uint64_t{1} << 40) fail("{}: dimension {} must be at most 2^40 (is {})", where, i, size);
    shape.insert(shape.begin(), static_cast<int64_t>(size));
  }
  placed.tensor.dtype = tensor_type(reader.integer<uint32_t>("a type"), where);
  placed.offset = reader.integer<uint64_t>("an offset");
  const auto bytes = byte_count(placed.tensor.dtype, shape);
  if (!bytes) fail("{}: {} overflows, or its rows are not whole blocks", where, describe(placed.tensor.dtype, shape));
  placed.bytes = *bytes;
  return placed;
}

// Gives the tensors their bytes. In the order of their offsets, each begins at the first aligned place behind the one
// before it.
std::map<std::string, TensorView> place_tensors(std::vector<Placed> tensors, std::span<const std::byte> data,
                                                uint64_t alignment, const std::string& path) {
  const auto order = [](const Placed& p) { return std::pair(p.offset, p.bytes); };
  std::ranges::stable_sort(tensors, {}, order);
  std::map<std::string, TensorView> views;
  uint64_t expected = 0;
  for (Placed& placed : tensors) {
    const std::string where = in_file(path, placed.name);
    if (placed.offset != expected)
      fail("{}: offset must be {} (is {}): tensors {}", where, expected, placed.offset,
           placed.offset < expected ? "overlap" : "leave a gap");
    if (placed.offset > data.size() || placed.bytes > data.size() - placed.offset)
      fail("{}: {} takes {} bytes at offset {}, beyond the {} bytes of data", where,
           describe(placed.tensor.dtype, placed.tensor.shape), placed.bytes, placed.offset, data.size());
    placed.tensor.data = data.subspan(placed.offset, placed.bytes);
    expected = (placed.offset + placed.bytes + alignment - 1) / alignment * alignment;
    if (!views.emplace(placed.name, std::move(placed.tensor)).second) fail("{}: appears twice", where);
  }
  if (data.size() > expected) fail("{}: {} bytes at the end belong to no tensor", path, data.size() - expected);
  return views;
}

uint64_t alignment_of(const GgufMetadata& metadata) {
  constexpr const char* kKey = "general.alignment";
  const int64_t alignment = metadata.integer(kKey, 32);
  const auto bits = static_cast<uint64_t>(alignment);
  if (alignment < 1 || bits > kMaxAlignment || (bits & (bits - 1)) != 0)
    fail("{}: {} must be a power of two up to {} (is {})", metadata.where(), kKey, kMaxAlignment, alignment);
  return bits;
}

}  // namespace

const GgufValue& GgufMetadata::at(const std::string& key) const {
  const auto place = values_.find(key);
  if (place == values_.end()) fail("{}: {} is missing", where_, key);
  return place->second;
}

void GgufMetadata::wrong(const std::string& key, const char* expected) const {
  fail("{}: {} must be {}", where_, key, expected);
}

int64_t GgufMetadata::integer_at(const std::string& key, const GgufValue& value, uint64_t index) const {
  switch (value.type) {
    case GgufType::u8:
      return load_at<uint8_t>(value.bytes, index);
    case GgufType::i8:
      return load_at<int8_t>(value.bytes, index);
    case GgufType::u16:
      return load_at<uint16_t>(value.bytes, index);
    case GgufType::i16:
      return load_at<int16_t>(value.bytes, index);
    case GgufType::u32:
      return load_at<uint32_t>(value.bytes, index);
    case GgufType::i32:
      return load_at<int32_t>(value.bytes, index);
    case GgufType::i64:
      return load_at<int64_t>(value.bytes, index);
    case GgufType::u64:
      if (load_at<uint64_t>(value.bytes, index) <= uint64_t{INT64_MAX}) return load_at<int64_t>(value.bytes, index);
      wrong(key, "below 2^63");
    default:
      wrong(key, value.is_array ? "an array of integers" : "an integer");
  }
}

int64_t GgufMetadata::integer(const std::string& key) const {
  const GgufValue& value = at(key);
  if (value.is_array) wrong(key, "an integer");
  return integer_at(key, value, 0);
}

double GgufMetadata::number(const std::string& key) const {
  const GgufValue& value = at(key);
  if (value.is_array) wrong(key, "a number");
  if (value.type != GgufType::f64 && value.type != GgufType::f32) return static_cast<double>(integer_at(key, value, 0));
  double number = 0;
  if (value.type == GgufType::f64) {
    number = load_at<double>(value.bytes, 0);
  } else {
    const std::string text = fmt::format("{}", load_at<float>(value.bytes, 0));
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  if (!std::isfinite(number)) wrong(key, "finite");
  return number;
}

bool GgufMetadata::flag(const std::string& key) const {
  const GgufValue& value = at(key);
  if (value.is_array || value.type != GgufType::boolean) wrong(key, "true or false");
  return value.bytes[0] != std::byte{0};
}

std::string GgufMetadata::text(const std::string& key) const {
  const GgufValue& value = at(key);
  if (value.is_array || value.type != GgufType::string) wrong(key, "a string");
  return {reinterpret_cast<const char*>(value.bytes.data()) + sizeof(uint64_t), value.bytes.size() - sizeof(uint64_t)};
}

const GgufValue& GgufMetadata::array(const std::string& key, uint64_t most) const {
  const GgufValue& value = at(key);
  if (!value.is_array) wrong(key, "an array");
  if (value.count > most) fail("{}: {} must have at most {} elements (has {})", where_, key, most, value.count);
  return value;
}

std::vector<std::string> GgufMetadata::texts(const std::string& key, uint64_t most) const {
  const GgufValue& value = array(key, most);
  if (value.type != GgufType::string) wrong(key, "an array of strings");
  std::vector<std::string> texts;
  texts.reserve(value.count);
  GgufReader reader(value.bytes, where_);
  for (uint64_t i = 0; i < value.count; i++) {
    const std::span<const std::byte> bytes = reader.take(reader.integer<uint64_t>("a size"), "a string");
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

std::vector<float> GgufMetadata::numbers(const std::string& key, uint64_t most) const {
  const GgufValue& value = array(key, most);
  if (value.type != GgufType::f32) wrong(key, "an array of float32");
  std::vector<float> numbers(value.count);
  for (uint64_t i = 0; i < value.count; i++) numbers[i] = load_at<float>(value.bytes, i);
  return numbers;
}

std::vector<int64_t> GgufMetadata::integers(const std::string& key, uint64_t most) const {
  const GgufValue& value = array(key, most);
  std::vector<int64_t> integers(value.count);
  for (uint64_t i = 0; i < value.count; i++) integers[i] = integer_at(key, value, i);
  return integers;
}

bool is_gguf(const std::string& path) { return read_beginning(path, kGgufMagic.size()) == kGgufMagic; }

GgufFile parse_gguf(std::span<const std::byte> bytes, const std::string& where) {
  GgufReader reader(bytes, where);
  if (std::memcmp(reader.take(kGgufMagic.size(), "the first word").data(), kGgufMagic.data(), kGgufMagic.size()) != 0)
    fail("{}: not a GGUF file: must begin with \"GGUF\"", where);
  const uint32_t version = reader.integer<uint32_t>("the version");
  if (version > 0xFFFF && version % 0x10000 == 0) fail("{}: big-endian files are not supported", where);
  if (version < kOldestGguf || version > kNewestGguf)
    fail("{}: version must be between {} and {} (is {})", where, kOldestGguf, kNewestGguf, version);
  const uint64_t tensors = reader.count("the number of tensors", 8, kMaxGgufItems);
  const uint64_t pairs = reader.count("the number of metadata pairs", 8, kMaxGgufItems);
  std::map<std::string, GgufValue> values;
  for (uint64_t i = 0; i < pairs; i++) {
    const std::string key = reader.name("a key");
    if (!values.emplace(key, read_value(reader, key, where)).second) fail("{}: {} appears twice", where, excerpt(key));
  }
  GgufMetadata metadata(std::move(values), where);
  const uint64_t alignment = alignment_of(metadata);
  std::vector<Placed> placed;
  for (uint64_t i = 0; i < tensors; i++) placed.push_back(read_tensor(reader, where));
  reader.align(alignment);
  auto views = place_tensors(std::move(placed), bytes.subspan(reader.place()), alignment, where);
  return {version, std::move(metadata), std::move(views)};
}

}  // namespace qkv
