// The lines of `qkv classify` and `qkv rerank`: text, and requests in JSON. docs/classify.md describes them;
// program/lines/result_json.h has their answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/classifier.h"

namespace qkv {

// Returns the input that a line holds: a text, or a pair of texts with a tab between. Throws Error, with the number of
// the line, for a second tab.
ClassifierInput parse_text_line(const std::string& line, int64_t number);

// Parses {"text": …, "pair": …}; the pair may be left out. Throws Error of one line, naming the member.
ClassifierInput parse_classify_line(std::string_view text);

struct RerankLine {
  std::string query = "";
  std::vector<std::string> texts = {};
  std::optional<int64_t> top = {};  // RerankOptions::top, if the request sets it
};

// Parses {"query": …, "texts": […], "top": …}; top may be left out. Throws Error of one line, naming the member.
RerankLine parse_rerank_line(std::string_view text);

}  // namespace qkv
