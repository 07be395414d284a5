// A column of a chunk of Arrow data: texts, integers, real numbers or times. The interface has pointers without sizes,
// so what can be checked is: counts, types, and that offsets, views and indices stay within what the array states.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "arrow_abi.h"

namespace qkv::python {

// Arrays are shorter, so that the sum of a length and an offset does not overflow.
inline constexpr int64_t kMostArrowRows = int64_t{1} << 60;

// Returns a text of the producer for an error: its first 80 bytes, without control characters.
std::string shown(std::string_view text);

// Times and real numbers: whole + millionths / 10⁶ with 0 ≤ millionths < 10⁶. Timestamps are in seconds since 1970.
struct ArrowTime {
  int64_t whole = 0;
  int32_t millionths = 0;
};

// The type of a column, from the format of a schema.
class ArrowType {
 public:
  // where: the column in errors, such as `log: column "user"`. Throws Error for another type.
  ArrowType(const ArrowSchema& schema, const std::string& where);

  bool is_text() const { return kind_ == Kind::offsets32 || kind_ == Kind::offsets64 || kind_ == Kind::views; }
  bool is_integer() const { return kind_ == Kind::integers; }
  const std::string& format() const { return format_; }

 private:
  friend class ArrowColumn;
  bool read_format();  // false for a format that is not supported

  enum class Kind { offsets32, offsets64, views, integers, reals, times, nulls };

  std::string format_;
  Kind kind_ = Kind::nulls;
  int64_t bytes_ = 0;      // of an element
  bool is_signed_ = true;  // of integers
  int64_t ticks_ = 1;      // of times: in a second; negative: seconds in one
};

// Rows of a column. The array must outlive it.
class ArrowColumn {
 public:
  // Rows [begin, begin + length) after the array's own offset. first_row: the number of the first row in errors. Throws
  // Error unless the array fits the schema and has these rows.
  ArrowColumn(const ArrowSchema& schema, const ArrowArray& array, int64_t begin, int64_t length, std::string where,
              int64_t first_row);

  // The type of the values, also of those of a dictionary.
  const ArrowType& type() const { return values_ ? values_->type_ : type_; }

  // Return the value of row i. Throw Error, naming the row, if it is null, not of this kind, or outside of the array.
  std::string_view text(int64_t i) const;  // as it is; it may be invalid UTF-8
  int64_t integer(int64_t i) const;
  ArrowTime time(int64_t i) const;

  // Throws Error with the column and the row.
  [[noreturn]] void fail_at(int64_t i, const std::string& problem) const;

 private:
  template <class T>
  T load(int64_t buffer, int64_t index) const;
  void check_buffers() const;
  bool is_null(int64_t i) const;
  void check_value(int64_t i) const;
  int64_t stored_integer(int64_t i) const;
  int64_t dictionary_index(int64_t i) const;
  std::string_view view(int64_t i) const;
  std::string_view between_offsets(int64_t i) const;

  const ArrowArray& array_;
  std::string where_;
  ArrowType type_;
  int64_t begin_ = 0, length_, first_row_;
  std::unique_ptr<ArrowColumn> values_;  // of a dictionary
};

}  // namespace qkv::python
