// The input of `qkv classify` and `qkv rerank`: lines of text and JSON requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qkv/classifier.h"

// Returns the input that a line holds: a text, or a pair of texts with a tab between. Throws qkv::Error for a second
// tab.
qkv::ClassifierInput input_of_line(const std::string& line, int64_t number);

// Parses {"text": …, "pair": …}; the pair may be left out. Throws qkv::Error, naming the member.
qkv::ClassifierInput classify_request(const std::string& line);

struct RerankRequest {
  std::string query;
  std::vector<std::string> texts;
  std::optional<int64_t> top;
};

// Parses {"query": …, "texts": […], "top": …}; top may be left out. Throws qkv::Error, naming the member.
RerankRequest rerank_request(const std::string& line);

// Returns the number with the fewest digits that are read back as this float32.
double shortest_decimal(float x);
