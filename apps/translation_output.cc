#include "translation_output.h"

#include <fmt/format.h>

#include <vector>

#include "json_line.h"

namespace {

using nlohmann::ordered_json;

// The format of fast_align and Moses: source-target, with tokens counted from 0.
std::string pharaoh(const std::vector<qkv::Alignment>& alignment) {
  std::string text;
  for (const qkv::Alignment& a : alignment) text += fmt::format("{}{}-{}", text.empty() ? "" : " ", a.source, a.target);
  return text;
}

ordered_json json_of(const qkv::Hypothesis& h, const OutputForm& form) {
  ordered_json json = {{"text", h.text},
                       {"tokens", h.tokens},
                       {"score", h.score},
                       {"log_probability", h.log_probability},
                       {"token_scores", h.token_scores}};
  if (form.word_scores)
    for (const qkv::WordScore& w : h.words)
      json["words"].push_back({{"word", w.word}, {"log_probability", w.log_probability}});
  if (form.alignment) {
    json["alignment"] = ordered_json::array();
    for (const qkv::Alignment& a : h.alignment) json["alignment"].push_back({a.source, a.target});
  }
  if (form.attention) json["attention"] = h.attention;
  return json;
}

}  // namespace

std::string output_lines(const qkv::Translation& translation, int64_t number, const OutputForm& form) {
  if (form.json) {
    ordered_json json = {{"source", translation.source}, {"source_tokens", translation.source_tokens}};
    json["hypotheses"] = ordered_json::array();
    for (const qkv::Hypothesis& h : translation.hypotheses) json["hypotheses"].push_back(json_of(h, form));
    return json_text(json) + "\n";
  }
  std::string lines;
  for (const qkv::Hypothesis& h : translation.hypotheses) {
    std::vector<std::string> fields;
    if (form.n_best) fields.push_back(fmt::format("{}", number));
    fields.push_back(h.text);
    if (form.alignment) fields.push_back(pharaoh(h.alignment));
    if (form.word_scores) {
      std::vector<std::string> scores;
      for (const qkv::WordScore& w : h.words) scores.push_back(fmt::format("{:.4f}", w.log_probability));
      fields.push_back(fmt::format("{}", fmt::join(scores, " ")));
    }
    if (form.n_best || form.scores) fields.push_back(fmt::format("{:.6f}", h.score));
    lines += fmt::format("{}\n", fmt::join(fields, " ||| "));
  }
  return lines;
}
