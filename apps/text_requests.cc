#include "text_requests.h"

#include <fmt/format.h>

#include "json_line.h"
#include "qkv/error.h"

namespace {

using nlohmann::ordered_json;

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
  const ordered_json json = parse_json_line(line);
  qkv::ClassifierInput input;
  for (const auto& [name, value] : json.items())
    if (name == "text")
      input.text = text_member(name, value);
    else if (name == "pair")
      input.pair = text_member(name, value);
    else
      throw qkv::Error(fmt::format("unknown name {} (choose from text, pair)", in_quotes(name)));
  need_member(json, "text");
  return input;
}

RerankRequest rerank_request(const std::string& line) {
  const ordered_json json = parse_json_line(line);
  RerankRequest request;
  for (const auto& [name, value] : json.items())
    if (name == "query")
      request.query = text_member(name, value);
    else if (name == "texts")
      request.texts = list_member(name, value);
    else if (name == "top")
      request.top = count_member(name, value);
    else
      throw qkv::Error(fmt::format("unknown name {} (choose from query, texts, top)", in_quotes(name)));
  for (const char* name : {"query", "texts"}) need_member(json, name);
  return request;
}

double shortest_decimal(float x) { return std::stod(fmt::format("{}", x)); }
