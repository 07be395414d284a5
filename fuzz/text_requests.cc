// A line for `qkv classify` and `qkv rerank`: text, or a JSON request.
#include "fuzz/reader.h"
#include "program/lines/classify_lines.h"

void qkv::fuzz::fuzz_text_requests(std::string_view bytes) {
  attempt([&] { parse_text_line(std::string(bytes), 1); });
  attempt([&] { parse_classify_line(bytes); });
  attempt([&] { require(parse_rerank_line(bytes).top.value_or(0) >= 0, "top is at least 0"); });
}
