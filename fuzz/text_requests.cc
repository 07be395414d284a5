// A line for `qkv classify` and `qkv rerank`: text, or a JSON request.
#include "apps/text_requests.h"

#include "fuzz/reader.h"

void qkv::fuzz::fuzz_text_requests(std::string_view bytes) {
  const std::string line(bytes);
  attempt([&] { input_of_line(line, 1); });
  attempt([&] { classify_request(line); });
  attempt([&] { require(rerank_request(line).top.value_or(0) >= 0, "top is at least 0"); });
}
