#include "io/weights/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kMaxNpyHeader = 1 << 16;  // bytes
constexpr size_t kMaxNpyRank = 8;

constexpr std::pair<std::string_view, DType> kNpyTypes[] = {
    {"<f4", DType::f32},     {"<f2", DType::f16}, {"<f8", DType::f64}, {"|i1", DType::i8},
    {"|u1", DType::u8},      {"<i2", DType::i16}, {"<i4", DType::i32}, {"<i8", DType::i64},
    {"|b1", DType::boolean}, {"<i1", DType::i8},  // as Marian writes it
};

// The dictionary of one array.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const std::string& where) : rest_(text), where_(where) {
    take('{');
    while (!skip('}')) {
      const std::string_view key = text_value();
      take(':');
      if (key == "descr")
        dtype_ = type(text_value());
      else if (key == "fortran_order")
        fortran_ = flag();
      else if (key == "shape")
        shape_ = sizes();
      else
        broken();
      skip(',');
    }
    if (!rest_.empty() || !dtype_ || !fortran_ || !shape_) broken();
    if (*fortran_) fail("{}: fortran_order must be False", where_);
  }

  DType dtype() const { return *dtype_; }
  const std::vector<int64_t>& shape() const { return *shape_; }

 private:
  [[noreturn]] void broken() const { fail("{}: the header is not that of an array", where_); }

  bool skip(char c) {
    trim();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    trim();
    return true;
  }
  void take(char c) {
    if (!skip(c)) broken();
  }
  void trim() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }

  std::string_view text_value() {
    const char quote = rest_.starts_with('"') ? '"' : '\'';
    if (!rest_.starts_with(quote)) broken();
    const size_t end = rest_.find(quote, 1);
    if (end == rest_.npos) broken();
    const std::string_view value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    trim();
    return value;
  }
  DType type(std::string_view name) const {
    for (const auto& [known, dtype] : kNpyTypes)
      if (known == name) return dtype;
    fail("{}: type must be <f4, <f2, <f8 or an integer (is {})", where_, excerpt(name));
  }
  bool flag() {
    for (const std::string_view value : {"True", "False"}) {
      if (!rest_.starts_with(value)) continue;
      rest_.remove_prefix(value.size());
      return value == "True";
    }
    broken();
  }
  std::vector<int64_t> sizes() {
    std::vector<int64_t> shape;
    take('(');
    while (!skip(')')) {
      int64_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0) broken();
      if (shape.size() == kMaxNpyRank) fail("{}: must have at most {} dimensions", where_, kMaxNpyRank);
      shape.push_back(size);
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (!skip(',') && !rest_.starts_with(')')) broken();
    }
    return shape;
  }

  std::string_view rest_;
  const std::string& where_;
  std::optional<DType> dtype_;
  std::optional<bool> fortran_;
  std::optional<std::vector<int64_t>> shape_;
};

}  // namespace

TensorView parse_npy(std::span<const std::byte> bytes, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr size_t kStart = kNpyMagic.size() + 2;  // with the version
  if (!text.starts_with(kNpyMagic) || text.size() < kStart + sizeof(uint32_t)) fail("{}: not an array of NumPy", where);
  const int version = static_cast<unsigned char>(text[kNpyMagic.size()]);
  if (version < 1 || version > 3) fail("{}: version must be between 1 and 3 (is {})", where, version);
  uint32_t size = 0;
  const size_t width = version == 1 ? sizeof(uint16_t) : sizeof(uint32_t), begin = kStart + width;
  std::memcpy(&size, text.data() + kStart, width);
  if (size > kMaxNpyHeader || size > text.size() - begin)
    fail("{}: a header of {} bytes does not fit into its {} bytes", where, size, text.size());
  const NpyHeader header(text.substr(begin, size), where);
  const std::span<const std::byte> data = bytes.subspan(begin + size);
  if (byte_count(header.dtype(), header.shape()) != data.size())
    fail("{}: {} does not match its {} bytes of data", where, describe(header.dtype(), header.shape()), data.size());
  return {header.dtype(), header.shape(), data};
}

}  // namespace qkv
