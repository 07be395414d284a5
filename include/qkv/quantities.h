// Sizes and times as people write them: "2M", "500 ms".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "qkv/field.h"

namespace [[gnu::visibility("default")]] qkv {

// Returns the number of bytes that a whole number stands for. K, M, G and T, or KiB, MiB, GiB and TiB, in any case, are
// powers of 1024; "64K" is 65536. Throws Error for other text, and beyond 2^63 − 1.
int64_t parse_bytes(std::string_view text);

// Returns the number of seconds that a number stands for, with ms, s, min or h after it; "5" is 5 s. Throws Error for
// other text, and beyond 10^9 s.
double parse_duration(std::string_view text);

// Return text that is parsed as the same number, short and with a whole number where there is one: "2M", "60s",
// "500ms". A time must be at least 0 and at most 10^9 s.
std::string bytes_text(int64_t bytes);
std::string duration_text(double seconds);

// The description of an option that is a size (int64_t, in bytes) or a time (double, in seconds). It can be given as
// text with a unit on the command line and in JSON. Made by quantity; the tag keeps a list in braces from becoming one.
struct QuantityField : Field {
  enum class Tag { quantity };
  constexpr QuantityField(Tag, const Field& field) : Field(field) {}
};
constexpr QuantityField quantity(const Field& field) { return {QuantityField::Tag::quantity, field}; }

// Returns the sizes or times that a field accepts, in words: "between 1K and 1G", "above 0s and at most 24h".
std::string accepted_bytes(const QuantityField& field);
std::string accepted_durations(const QuantityField& field);

// Set an option from text. Throw Error, which does not name the option, for text that is no size or time and for one
// that the field does not accept.
void set_quantity(int64_t& bytes, std::string_view text, const QuantityField& field);
void set_quantity(double& seconds, std::string_view text, const QuantityField& field);

}  // namespace qkv
