#include "convert/formats/ctranslate2_file.h"

#include <cmath>
#include <cstring>

#include "core/json.h"

namespace qkv {
namespace {

constexpr uint32_t kOldest = 2, kNewest = 6;
constexpr uint8_t kMaxRank = 8;
constexpr size_t kMaxName = 256;             // bytes
constexpr uint64_t kMaxVariables = 1 << 16;  // with aliases: some 40 MB in memory
constexpr DType kTypes[] = {DType::f32, DType::i8, DType::i16, DType::i32, DType::f16, DType::bf16};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& where)
      : rest_(bytes), size_(bytes.size()), where_(where) {}

  template <class T>
  T integer(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string name(const char* what) {
    const size_t size = integer<uint16_t>(what);
    if (size > kMaxName)
      fail("{}: {} at byte {} must have at most {} bytes (has {})", where_, what, size_ - rest_.size(), kMaxName, size);
    const std::span<const std::byte> bytes = take(size, what);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), size);
    if (text.empty() || text.find('\0') != size - 1)
      fail("{}: {} before byte {} must have one zero byte, at its end", where_, what, size_ - rest_.size());
    return text.substr(0, size - 1);
  }

  std::span<const std::byte> take(size_t count, const char* what) {
    if (count > rest_.size())
      fail("{}: truncated, or not a CTranslate2 model: {} at byte {} needs {} bytes ({} are left)", where_, what,
           size_ - rest_.size(), count, rest_.size());
    const std::span<const std::byte> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  // Reads a number of variables or aliases.
  uint32_t count(const char* what) {
    const uint32_t n = integer<uint32_t>(what);
    counted_ += n;
    if (counted_ > kMaxVariables)
      fail("{}: must have at most {} variables and aliases (has {})", where_, kMaxVariables, counted_);
    return n;
  }

  size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  size_t size_;
  uint64_t counted_ = 0;
  const std::string& where_;
};

// Reads the type and the number of bytes of a variable, in the old form and in the new one.
std::pair<DType, uint64_t> type_and_size(Reader& reader, uint32_t version, const std::string& where) {
  const uint8_t type = reader.integer<uint8_t>("a type");
  const uint64_t size = reader.integer<uint32_t>("a size");
  if (version >= 4) {
    if (type >= std::size(kTypes))
      fail("{}: type must be between 0 and {} (is {})", where, std::size(kTypes) - 1, type);
    return {kTypes[type], size};
  }
  if (type == 4) return {DType::f32, size * 4};
  if (type == 2) return {DType::i16, size * 2};
  if (type == 1) return {DType::i8, size};
  fail("{}: items must have 1, 2 or 4 bytes (have {})", where, type);
}

TensorView read_variable(Reader& reader, uint32_t version, const std::string& where) {
  const uint8_t rank = reader.integer<uint8_t>("a rank");
  if (rank > kMaxRank) fail("{}: must have at most {} dimensions (has {})", where, kMaxRank, rank);
  TensorView tensor;
  tensor.shape.resize(rank);
  for (int64_t& size : tensor.shape) size = reader.integer<uint32_t>("a dimension");
  const auto [dtype, bytes] = type_and_size(reader, version, where);
  tensor.dtype = dtype;
  const auto expected = byte_count(dtype, tensor.shape);
  if (!expected || *expected != bytes)
    fail("{}: {} does not match its {} bytes of data", where, describe(dtype, tensor.shape), bytes);
  tensor.data = reader.take(bytes, "the data of a variable");
  return tensor;
}

constexpr size_t kMaxText = 1000;  // bytes
constexpr double kMaxInteger = 1 << 24;

template <class T>
T load(const TensorView& tensor) {
  T value;
  std::memcpy(&value, tensor.data.data(), sizeof value);
  return value;
}

}  // namespace

CTranslate2File parse_ctranslate2(std::span<const std::byte> bytes, const std::string& where) {
  Reader reader(bytes, where);
  CTranslate2File file;
  file.version = reader.integer<uint32_t>("the version");
  if (file.version < kOldest || file.version > kNewest)
    fail("{}: not a CTranslate2 model, or its version is not between {} and {} (is {})", where, kOldest, kNewest,
         file.version);
  file.specification = reader.name("the specification");
  file.revision = reader.integer<uint32_t>("the revision");
  const uint32_t variables = reader.count("the number of variables");
  for (uint32_t i = 0; i < variables; i++) {
    std::string name = reader.name("the name of a variable");
    TensorView tensor = read_variable(reader, file.version, in_file(where, name));
    if (!file.variables.emplace(name, std::move(tensor)).second) fail("{}: appears twice", in_file(where, name));
  }
  const uint32_t aliases = file.version >= 3 ? reader.count("the number of aliases") : 0;
  for (uint32_t i = 0; i < aliases; i++) {
    const std::string alias = reader.name("an alias"), name = reader.name("the name of a variable");
    for (const char* part : {"", "_scale"}) {
      const auto place = file.variables.find(name + part);
      if (place == file.variables.end() && *part) continue;
      if (place == file.variables.end())
        fail("{}: is an alias of {}, which is missing", in_file(where, alias), excerpt(name));
      const auto [added, is_new] = file.variables.emplace(alias + part, place->second);
      if (!is_new && (!*part || added->second.data.data() != place->second.data.data()))
        fail("{}: appears twice", in_file(where, alias + part));
    }
  }
  if (reader.left() > 0) fail("{}: has {} bytes after the last variable", where, reader.left());
  return file;
}

std::optional<double> CTranslate2Attributes::number(const std::string& name) {
  const TensorView* tensor = tensors_.find(name);
  if (!tensor) return {};
  tensors_.ignore(name);
  const bool single = tensor->shape.size() <= 1 && byte_count(tensor->dtype, {}) == tensor->data.size();
  if (single && tensor->dtype == DType::f32) return load<float>(*tensor);
  if (single && tensor->dtype == DType::i32) return load<int32_t>(*tensor);
  if (single && tensor->dtype == DType::i16) return load<int16_t>(*tensor);
  if (single && tensor->dtype == DType::i8) return load<int8_t>(*tensor);
  fail("{}: must be a single number (is {})", in_file(tensors_.path(), name), describe(tensor->dtype, tensor->shape));
}

std::optional<double> CTranslate2Attributes::number(const std::string& side, const std::string& name) {
  const auto own = number(side + "/" + name);
  return own || file_.revision >= 5 ? own : number(name);
}

int64_t CTranslate2Attributes::integer(const std::string& side, const std::string& name, int64_t otherwise) {
  const double value = number(side, name).value_or(static_cast<double>(otherwise));
  if (!(std::abs(value) <= kMaxInteger && value == std::nearbyint(value)))
    fail("{}: must be an integer of at most {} (is {})", in_file(tensors_.path(), side + "/" + name), kMaxInteger,
         value);
  return static_cast<int64_t>(value);
}

std::string CTranslate2Attributes::text(const std::string& name, const std::string& otherwise) {
  const TensorView* tensor = tensors_.find(name);
  if (!tensor) return otherwise;
  tensors_.ignore(name);
  if (tensor->dtype != DType::i8 || tensor->data.size() > kMaxText)
    fail("{}: must be a text of at most {} bytes (is {})", in_file(tensors_.path(), name), kMaxText,
         describe(tensor->dtype, tensor->shape));
  return {reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size()};
}

}  // namespace qkv
