#include "arrow_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "qkv/error.h"

namespace qkv::python {
namespace {

constexpr size_t kLongestShown = 80;
constexpr int64_t kMillion = 1'000'000;

ArrowTime time_of(double value) {
  const double whole = std::floor(value);
  ArrowTime time{static_cast<int64_t>(whole), static_cast<int32_t>(std::lround((value - whole) * 1e6))};
  if (time.millionths == kMillion) time.whole++, time.millionths = 0;
  return time;
}

}  // namespace

std::string shown(std::string_view text) {
  size_t end = std::min(text.size(), kLongestShown);
  while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80) end--;  // not within a character
  std::string found(text.substr(0, end));
  for (char& c : found)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return end < text.size() ? found + "…" : found;
}

ArrowType::ArrowType(const ArrowSchema& schema, const std::string& where)
    : format_(schema.format ? schema.format : "") {
  if (!read_format())
    throw Error(fmt::format("{} has the Arrow type \"{}\"; expected strings, integers, float32, float64 or timestamps",
                            where, shown(format_)));
}

bool ArrowType::read_format() {
  constexpr std::string_view kIntegers = "cCsSiIlL";
  const auto is = [&](Kind kind, int64_t bytes) {
    kind_ = kind, bytes_ = bytes;
    return true;
  };
  if (format_ == "u") return is(Kind::offsets32, 4);
  if (format_ == "U") return is(Kind::offsets64, 8);
  if (format_ == "vu") return is(Kind::views, 16);
  if (format_ == "n") return is(Kind::nulls, 0);
  if (format_ == "f" || format_ == "g") return is(Kind::reals, format_ == "f" ? 4 : 8);
  if (const size_t place = kIntegers.find(format_); format_.size() == 1 && place != kIntegers.npos) {
    is_signed_ = place % 2 == 0;
    return is(Kind::integers, int64_t{1} << (place / 2));
  }
  const std::string unit = format_.substr(0, 3);
  ticks_ = format_ == "tdD"                    ? -86400
           : unit == "tss"                     ? 1
           : unit == "tsm" || format_ == "tdm" ? 1000
           : unit == "tsu"                     ? kMillion
           : unit == "tsn"                     ? 1000 * kMillion
                                               : 0;
  return ticks_ != 0 && is(Kind::times, format_ == "tdD" ? 4 : 8);
}

ArrowColumn::ArrowColumn(const ArrowSchema& schema, const ArrowArray& array, int64_t begin, int64_t length,
                         std::string where, int64_t first_row)
    : array_(array), where_(std::move(where)), type_(schema, where_), length_(length), first_row_(first_row) {
  const bool fits = array.offset >= 0 && array.offset < kMostArrowRows && begin >= 0 && length >= 0 &&
                    array.length >= 0 && array.length < kMostArrowRows && begin <= array.length &&
                    length <= array.length - begin;
  if (!fits)
    throw Error(fmt::format("{}: an Arrow array of length {} and offset {} does not have {} rows from {} on", where_,
                            array.length, array.offset, length, begin));
  begin_ = array.offset + begin;
  check_buffers();
  if (!schema.dictionary) return;
  if (!array.dictionary || schema.dictionary->dictionary || type_.kind_ != ArrowType::Kind::integers)
    throw Error(
        fmt::format("{}: an Arrow dictionary must have integers as indices and values of a plain type", where_));
  values_ = std::make_unique<ArrowColumn>(*schema.dictionary, *array.dictionary, 0, array.dictionary->length,
                                          where_ + ", dictionary", 0);
}

void ArrowColumn::check_buffers() const {
  using Kind = ArrowType::Kind;
  const Kind kind = type_.kind_;
  const int64_t n = array_.n_buffers;
  const bool counted = kind == Kind::nulls ? n == 0 : kind == Kind::views ? n >= 3 : type_.is_text() ? n == 3 : n == 2;
  if (!counted || n > kMostArrowRows || (n > 0 && !array_.buffers))
    throw Error(
        fmt::format("{}: an Arrow array of type \"{}\" with {} buffers is invalid", where_, shown(type_.format_), n));
  if (kind == Kind::nulls || length_ == 0) return;
  if (!array_.buffers[1] || (array_.null_count > 0 && !array_.buffers[0]))
    throw Error(fmt::format("{}: an Arrow array of type \"{}\" lacks a buffer", where_, shown(type_.format_)));
}

void ArrowColumn::fail_at(int64_t i, const std::string& problem) const {
  throw Error(fmt::format("{}, row {} (from 0): {}", where_, first_row_ + i, problem));
}

template <class T>
T ArrowColumn::load(int64_t buffer, int64_t index) const {
  T value;
  std::memcpy(&value, static_cast<const char*>(array_.buffers[buffer]) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

bool ArrowColumn::is_null(int64_t i) const {
  if (type_.kind_ == ArrowType::Kind::nulls) return true;
  const int64_t bit = begin_ + i;
  return array_.buffers[0] && !(load<uint8_t>(0, bit / 8) >> (bit % 8) & 1);
}

void ArrowColumn::check_value(int64_t i) const {
  if (is_null(i)) fail_at(i, "the value is null");
}

int64_t ArrowColumn::stored_integer(int64_t i) const {
  check_value(i);
  const int64_t at = begin_ + i;
  switch (type_.bytes_) {
    case 1:
      return type_.is_signed_ ? load<int8_t>(1, at) : load<uint8_t>(1, at);
    case 2:
      return type_.is_signed_ ? load<int16_t>(1, at) : load<uint16_t>(1, at);
    case 4:
      return type_.is_signed_ ? int64_t{load<int32_t>(1, at)} : int64_t{load<uint32_t>(1, at)};
    default:
      break;
  }
  const auto value = load<int64_t>(1, at);
  if (!type_.is_signed_ && value < 0) fail_at(i, "the integer does not fit into 64 bits with a sign");
  return value;
}

int64_t ArrowColumn::dictionary_index(int64_t i) const {
  const int64_t index = stored_integer(i);
  if (index < 0 || index >= values_->length_)
    fail_at(i, fmt::format("the dictionary of {} values has no index {}", values_->length_, index));
  if (values_->is_null(index)) fail_at(i, "the value is null");
  return index;
}

std::string_view ArrowColumn::between_offsets(int64_t i) const {
  const bool wide = type_.kind_ == ArrowType::Kind::offsets64;
  const auto offset = [&](int64_t at) { return wide ? load<int64_t>(1, at) : int64_t{load<int32_t>(1, at)}; };
  const int64_t at = begin_ + i, first = offset(at), end = offset(at + 1), last = offset(array_.offset + array_.length);
  if (first < 0 || first > end || end > last || (end > first && !array_.buffers[2]))
    fail_at(i, fmt::format("the offsets {} and {} are not within a text of {} bytes", first, end, last));
  return {static_cast<const char*>(array_.buffers[2]) + (end > first ? first : 0), static_cast<size_t>(end - first)};
}

// A view is 16 bytes: a length, and up to 12 bytes of text, or 4 bytes of it, the number of a buffer and an offset.
std::string_view ArrowColumn::view(int64_t i) const {
  const char* bytes = static_cast<const char*>(array_.buffers[1]) + (begin_ + i) * 16;
  int32_t parts[4];
  std::memcpy(parts, bytes, sizeof parts);
  const auto [length, prefix, buffer, offset] = parts;
  if (length >= 0 && length <= 12) return {bytes + 4, static_cast<size_t>(length)};
  const int64_t buffers = array_.n_buffers - 3, sizes = array_.n_buffers - 1;
  const bool exists =
      length >= 0 && buffer >= 0 && buffer < buffers && array_.buffers[2 + buffer] && array_.buffers[sizes];
  if (!exists || offset < 0 || int64_t{offset} + length > load<int64_t>(sizes, buffer))
    fail_at(i, fmt::format("the view of {} bytes at {} of buffer {} is not within a buffer", length, offset, buffer));
  return {static_cast<const char*>(array_.buffers[2 + buffer]) + offset, static_cast<size_t>(length)};
}

std::string_view ArrowColumn::text(int64_t i) const {
  if (values_) return values_->text(dictionary_index(i));
  check_value(i);
  if (!type_.is_text())
    fail_at(i, fmt::format("expected a string (is of the Arrow type \"{}\")", shown(type_.format_)));
  return type_.kind_ == ArrowType::Kind::views ? view(i) : between_offsets(i);
}

int64_t ArrowColumn::integer(int64_t i) const {
  if (values_) return values_->integer(dictionary_index(i));
  if (!type_.is_integer())
    fail_at(i, fmt::format("expected an integer (is of the Arrow type \"{}\")", shown(type_.format_)));
  return stored_integer(i);
}

ArrowTime ArrowColumn::time(int64_t i) const {
  if (values_) return values_->time(dictionary_index(i));
  check_value(i);
  if (type_.is_integer()) return {stored_integer(i), 0};
  const int64_t at = begin_ + i;
  if (type_.kind_ == ArrowType::Kind::reals) {
    const double value = type_.bytes_ == 4 ? static_cast<double>(load<float>(1, at)) : load<double>(1, at);
    if (!(std::abs(value) < 0x1p53)) fail_at(i, fmt::format("the time must be finite and below 2^53 (is {})", value));
    return time_of(value);
  }
  if (type_.kind_ != ArrowType::Kind::times)
    fail_at(i, fmt::format("expected an integer, a float or a timestamp (is of the Arrow type \"{}\")",
                           shown(type_.format_)));
  if (type_.ticks_ < 0) return {-type_.ticks_ * load<int32_t>(1, at), 0};
  const auto value = load<int64_t>(1, at);
  const int64_t below = value % type_.ticks_, rest = below < 0 ? below + type_.ticks_ : below;
  return {value / type_.ticks_ - (below < 0), static_cast<int32_t>(rest * kMillion / type_.ticks_)};
}

}  // namespace qkv::python
