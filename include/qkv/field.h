// The description of one option. Every struct of options lists its members once, in a function visit_fields:
//
//   template <class Visitor>
//   void visit_fields(TranslateOptions& o, Visitor&& visit) {
//     visit("beam", o.beam, {"Hypotheses kept per step; 1 is greedy search", "search", between(1, 1024), kCommon});
//   }
//
// The list drives validation, JSON, the command line, the Python binding and docs/options.md. A member is a bool, a
// number (int64_t, uint64_t, double), a std::string, a list of strings, an enum with names_of, or an optional of these.
#pragma once

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

}  // namespace qkv
