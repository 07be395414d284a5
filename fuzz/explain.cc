// The matrices of `qkv explain`.
#include "program/explain/explain.h"

#include "fuzz/reader.h"

void qkv::fuzz::fuzz_explain(std::string_view bytes) {
  attempt([&] {
    const ExplainInput input = explain_input_from_json(bytes, "input");
    const std::string json = explain_input_to_json(input);
    require(explain_input_to_json(explain_input_from_json(json, "input")) == json, "written, it reads as the same");
    explanation_to_text(explain_attention(input));
    explanation_to_html(input);
  });
}
