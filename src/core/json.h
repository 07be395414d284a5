// Strict JSON for untrusted text (RFC 8259, and no duplicate names in an object).
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"

namespace qkv {

constexpr int kJsonDepth = 64;  // arrays and objects within each other

// Throws Error that names `where` and what is wrong: a syntax error or invalid UTF-8 with its position in bytes,
// a number beyond double, a name that stands twice in one object, more than kJsonDepth levels, more values than fit
// into the size of the text and 64 MB.
nlohmann::json parse_json(std::string_view text, const std::string& where);

// An entry of a long list, array or object.
struct JsonItem {
  enum class Kind { string, number, real, other };  // number: a whole one from 0 on; real: any other number

  std::string_view list = {}, name = {};  // the list's name; of what is in an object, the member's
  size_t depth = 1, place = 0;            // 2 in an array in the list; its place in its array or object
  Kind kind = Kind::other;
  std::string_view text = {};
  uint64_t number = 0;
  double real = 0;  // of both kinds of numbers
};

// parse_json of an object, without the lists of these names in its member `object`: they are empty there, and what
// stands in them goes to `take`, in order, in no more memory than an item. Whether a name stands twice in a list is not
// checked.
nlohmann::json parse_json_lists(std::string_view text, const std::string& where, std::string_view object,
                                std::span<const std::string_view> lists, FunctionRef<void(const JsonItem&)> take);

// JSON that is an array of strings, in no more memory than these. Throws Error for other values, and as above.
std::vector<std::string> parse_json_strings(std::string_view text, const std::string& where);

// JSON that is an object: puts its members of these names into `values`, strings as they are and numbers as they are
// written; empty where one is absent or null. Other members are only checked for syntax. Throws Error: another value, a
// member of these names that stands twice or is neither, and what parse_json says of syntax, depth and numbers.
void parse_json_members(std::string_view text, const std::string& where, std::span<const std::string> names,
                        std::span<std::string> values);

// Returns the index of the name that a value has, or nothing. The values true and false have the names "true" and
// "false".
std::optional<size_t> find_choice(const nlohmann::json& value, std::span<const std::string_view> names);

// A JSON string, quotes included. Invalid UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

// The same, cut to a length that fits in an error message: text from a file may hold anything.
std::string excerpt(std::string_view text);

}  // namespace qkv
