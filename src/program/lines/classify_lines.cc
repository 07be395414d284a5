#include "program/lines/classify_lines.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"
#include "program/lines/request_json.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

std::string text_member(std::string_view name, const ordered_json& value) {
  if (!value.is_string()) fail("\"{}\" must be a string", name);
  return value.get<std::string>();
}

std::vector<std::string> list_member(std::string_view name, const ordered_json& value) {
  if (!value.is_array()) fail("\"{}\" must be a list of strings", name);
  std::vector<std::string> texts;
  for (const ordered_json& text : value) {
    if (!text.is_string()) fail("\"{}\" must be a list of strings", name);
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

int64_t count_member(std::string_view name, const ordered_json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX) fail("\"{}\" must be an integer from 0", name);
  return value.get<int64_t>();
}

void need_member(const ordered_json& json, const char* name) {
  if (!json.contains(name)) fail("must have \"{}\"", name);
}

}  // namespace

ClassifierInput parse_text_line(const std::string& line, int64_t number) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return {line};
  if (line.find('\t', tab + 1) != std::string::npos)
    fail("line {}: has {} tabs, expected at most 1, between the texts of a pair", number,
         std::ranges::count(line, '\t'));
  return {line.substr(0, tab), line.substr(tab + 1)};
}

ClassifierInput parse_classify_line(std::string_view text) {
  const ordered_json json = parse_request_json(text);
  ClassifierInput input;
  for (const auto& [name, value] : json.items())
    if (name == "text")
      input.text = text_member(name, value);
    else if (name == "pair")
      input.pair = text_member(name, value);
    else
      fail("unknown name {} (choose from text, pair)", excerpt(name));
  need_member(json, "text");
  return input;
}

RerankLine parse_rerank_line(std::string_view text) {
  const ordered_json json = parse_request_json(text);
  RerankLine line;
  for (const auto& [name, value] : json.items())
    if (name == "query")
      line.query = text_member(name, value);
    else if (name == "texts")
      line.texts = list_member(name, value);
    else if (name == "top")
      line.top = count_member(name, value);
    else
      fail("unknown name {} (choose from query, texts, top)", excerpt(name));
  for (const char* name : {"query", "texts"}) need_member(json, name);
  return line;
}

}  // namespace qkv
