// Strict JSON for text that nobody has checked yet (RFC 8259, and no name twice in one object).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

constexpr int kJsonDepth = 64;  // arrays and objects within each other

// Throws Error that names `where` and what is wrong: a syntax error or invalid UTF-8 with its position in bytes,
// a number beyond double, a name that stands twice in one object, more than kJsonDepth levels, more values than fit
// into the size of the text and 64 MB.
nlohmann::json parse_json(std::string_view text, const std::string& where);

// JSON that is an array of strings, in no more memory than these. Throws Error for other values, and as above.
std::vector<std::string> parse_json_strings(std::string_view text, const std::string& where);

// JSON that is an object: puts its members of these names into `values`, strings as they are and numbers as they are
// written; empty where one is absent or null. Of the others only the syntax is checked. Throws Error: another value, a
// member of these names that stands twice or is neither, and what parse_json says of syntax, depth and numbers.
void parse_json_members(std::string_view text, const std::string& where, std::span<const std::string> names,
                        std::span<std::string> values);

// A JSON string, quotes included. Invalid UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

// The same, cut to a length that fits in an error message: text from a file may hold anything.
std::string excerpt(std::string_view text);

}  // namespace qkv
