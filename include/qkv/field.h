// The description of one option. Every struct of options lists its members once, in a function visit_fields:
//
//   template <class Visitor>
//   void visit_fields(TranslateOptions& o, Visitor&& visit) {
//     visit("beam", o.beam, {"Hypotheses kept per step; 1 is greedy search", "search", between(1, 1024), kCommon});
//   }
//
// The list drives validation, JSON, the command line, the Python binding and docs/options.md. A member is a bool, a
// number (int64_t, uint64_t, double), a std::string, a list of strings or of int64_t, an enum with names_of, or an
// optional of these.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] qkv {

// The numbers that an option accepts. They are always finite.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_exclusive = false, max_exclusive = false;

  constexpr Range without_min() const { return {min, max, true, max_exclusive}; }
  constexpr Range without_max() const { return {min, max, min_exclusive, true}; }

  constexpr bool contains(double value) const {
    return (min_exclusive ? value > min : value >= min) && (max_exclusive ? value < max : value <= max) &&
           value - value == 0;  // neither infinite nor NaN
  }
};

constexpr Range at_least(double min) { return {.min = min}; }
constexpr Range above(double min) { return at_least(min).without_min(); }
constexpr Range between(double min, double max) { return {.min = min, .max = max}; }  // both included

// Returns the range in words: "between 1 and 16", "above 0 and at most 1", "at least 0", "finite".
std::string to_string(const Range& range);

// Where an option is offered: in the short help; in the full help (--help-all) only; or nowhere, because its value
// follows from the data or from other options and is only stored.
enum class Visibility { common, advanced, internal };
inline constexpr Visibility kCommon = Visibility::common, kInternal = Visibility::internal;

struct Field {
  std::string_view help;   // what the option does, in one line without a full stop
  std::string_view group;  // options that belong together: "search", "sampling", "model", "optimizer", …
  Range range = {};        // of a number
  Visibility visibility = Visibility::advanced;

  constexpr Field(const char* text = "", std::string_view in_group = {}, const Range& accepted = {},
                  Visibility offered = Visibility::advanced)
      : help(text), group(in_group), range(accepted), visibility(offered) {}
};

// ---- Sizes and times as people write them: "2M", "500 ms"

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
