#include "text_requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "qkv/error.h"

namespace {

using nlohmann::ordered_json;

constexpr int kRequestDepth = 4;  // maximum nesting of arrays and objects

ordered_json parse_request(const std::string& line) {
  ordered_json json;
  try {
    json = ordered_json::parse(line, [](int depth, ordered_json::parse_event_t, ordered_json&) {
      if (depth > kRequestDepth) throw qkv::Error(fmt::format("JSON must have at most {} levels", kRequestDepth));
      return true;
    });
  } catch (const ordered_json::exception&) {
    throw qkv::Error("not valid JSON");
  }
  if (!json.is_object()) throw qkv::Error("not a JSON object");
  return json;
}

std::string text_member(std::string_view name, const ordered_json& value) {
  if (!value.is_string()) throw qkv::Error(fmt::format("\"{}\" must be a string", name));
  return value.get<std::string>();
}

std::vector<std::string> list_member(std::string_view name, const ordered_json& value) {
  if (!value.is_array()) throw qkv::Error(fmt::format("\"{}\" must be a list of strings", name));
  std::vector<std::string> texts;
  for (const ordered_json& text : value) {
    if (!text.is_string()) throw qkv::Error(fmt::format("\"{}\" must be a list of strings", name));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

int64_t count_member(std::string_view name, const ordered_json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX)
    throw qkv::Error(fmt::format("\"{}\" must be an integer from 0", name));
  return value.get<int64_t>();
}

void need_member(const ordered_json& json, const char* name) {
  if (!json.contains(name)) throw qkv::Error(fmt::format("must have \"{}\"", name));
}

}  // namespace

qkv::ClassifierInput input_of_line(const std::string& line, int64_t number) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return {line};
  if (line.find('\t', tab + 1) != std::string::npos)
    throw qkv::Error(fmt::format("line {}: has {} tabs, expected at most 1, between the texts of a pair", number,
                                 std::ranges::count(line, '\t')));
  return {line.substr(0, tab), line.substr(tab + 1)};
}

qkv::ClassifierInput classify_request(const std::string& line) {
  const ordered_json json = parse_request(line);
  qkv::ClassifierInput input;
  for (const auto& [name, value] : json.items())
    if (name == "text")
      input.text = text_member(name, value);
    else if (name == "pair")
      input.pair = text_member(name, value);
    else
      throw qkv::Error(fmt::format("unknown name \"{}\" (choose from text, pair)", name));
  need_member(json, "text");
  return input;
}

RerankRequest rerank_request(const std::string& line) {
  const ordered_json json = parse_request(line);
  RerankRequest request;
  for (const auto& [name, value] : json.items())
    if (name == "query")
      request.query = text_member(name, value);
    else if (name == "texts")
      request.texts = list_member(name, value);
    else if (name == "top")
      request.top = count_member(name, value);
    else
      throw qkv::Error(fmt::format("unknown name \"{}\" (choose from query, texts, top)", name));
  for (const char* name : {"query", "texts"}) need_member(json, name);
  return request;
}

double shortest_decimal(float x) { return std::stod(fmt::format("{}", x)); }

std::string json_text(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}
