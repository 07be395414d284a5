// A line of JSON, asked or answered, as the JSON-lines commands share it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

// Parses a request: one JSON object of at most 4 levels. Throws qkv::Error of one line, without a place.
nlohmann::ordered_json parse_json_line(const std::string& line);

// Returns JSON in one line, without its end; bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

// Returns text of a request, quoted and escaped for a message of one line; beyond 100 bytes it is cut.
std::string in_quotes(std::string_view text);
