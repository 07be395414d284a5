// A request or an answer in one line of JSON, as a value.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace qkv {

// Parses a request: one JSON object of at most 4 levels, whose names keep their order and stand once in an object.
// Takes memory in proportion to the text, and no more time than sorting takes. Throws Error of one line, without a
// place.
nlohmann::ordered_json parse_request_json(std::string_view text);

// Returns JSON in one line, without its end; bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

// Returns JSON in which the line ends that JSON allows within strings (U+0085, U+2028, U+2029) are escaped, so that
// Python's str.splitlines() leaves its line whole.
std::string with_escaped_line_ends(std::string json);

// The same of an object that is not empty, with another first member "id", whose value is the text of a JSON value; "":
// none.
std::string json_text_with_id(const std::string& id, const nlohmann::ordered_json& json);

}  // namespace qkv
