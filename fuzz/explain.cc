// The matrices of `qkv explain`.
#include "program/explain/explain.h"

#include "fuzz/reader.h"

namespace {

constexpr size_t kMostTokens = 16;  // whose arithmetic is written: a Jacobian for each token has the square of texts

}  // namespace

void qkv::fuzz::fuzz_explain(std::string_view bytes) {
  attempt([&] {
    const ExplainInput input = explain_input_from_json(bytes, "input");
    const std::string json = explain_input_to_json(input);
    require(explain_input_to_json(explain_input_from_json(json, "input")) == json, "written, it reads as the same");
    const bool backward = input.has_gradient();
    const bool arithmetic = input.tokens.size() <= kMostTokens && input.memory_tokens.size() <= kMostTokens;
    explanation_to_text(explain_attention(input, {backward, arithmetic}));
    explanation_to_html(input, backward);
  });
}
