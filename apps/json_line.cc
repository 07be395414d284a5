#include "json_line.h"

#include <fmt/format.h>

#include "qkv/error.h"

using nlohmann::ordered_json;

ordered_json parse_json_line(const std::string& line) {
  static constexpr int kDepth = 4;  // maximum nesting of arrays and objects
  ordered_json json;
  try {
    json = ordered_json::parse(line, [](int depth, ordered_json::parse_event_t, ordered_json&) {
      if (depth > kDepth) throw qkv::Error(fmt::format("JSON must have at most {} levels", kDepth));
      return true;
    });
  } catch (const ordered_json::exception&) {
    throw qkv::Error("not valid JSON");
  }
  if (!json.is_object()) throw qkv::Error("not a JSON object");
  return json;
}

std::string json_text(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 100;  // bytes
  return text.size() <= kLongest ? json_text(text) : json_text(text.substr(0, kLongest)) + "...";
}
