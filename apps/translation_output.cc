#include "translation_output.h"

#include <fmt/format.h>

#include <vector>

#include "qkv/result_json.h"

namespace {

// The format of fast_align and Moses: source-target, with tokens counted from 0.
std::string pharaoh(const std::vector<qkv::Alignment>& alignment) {
  std::string text;
  for (const qkv::Alignment& a : alignment) text += fmt::format("{}{}-{}", text.empty() ? "" : " ", a.source, a.target);
  return text;
}

}  // namespace

std::string output_lines(const qkv::Translation& translation, int64_t number, const OutputForm& form) {
  if (form.json)
    return qkv::translation_to_json(translation, {form.word_scores, form.alignment, form.attention}) + "\n";
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
