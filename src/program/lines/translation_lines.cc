// Translations as lines of text.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "qkv/line_jobs.h"
#include "qkv/result_json.h"
#include "qkv/text.h"

namespace qkv {
namespace {

// The format of fast_align and Moses: source-target, with tokens counted from 0.
std::string pharaoh(const std::vector<Alignment>& alignment) {
  std::string text;
  for (const Alignment& a : alignment) text += fmt::format("{}{}-{}", text.empty() ? "" : " ", a.source, a.target);
  return text;
}

std::string word_scores(const Hypothesis& h) {
  std::vector<std::string> scores;
  for (const WordScore& w : h.words) scores.push_back(fmt::format("{:.4f}", w.log_probability));
  return fmt::format("{}", fmt::join(scores, " "));
}

}  // namespace

TranslationForm form_of(const TranslateOptions& options, bool json) {
  return {.json = json, .n_best = options.n_best > 1, .alignment = options.alignment, .attention = options.attention};
}

std::string translation_lines(const Translation& translation, int64_t number, const TranslationForm& form) {
  if (form.json) return translation_to_json(translation, {form.word_scores, form.alignment, form.attention}) + "\n";
  std::string lines;
  for (const Hypothesis& h : translation.hypotheses) {
    std::vector<std::string> fields;
    if (form.n_best) fields.push_back(fmt::format("{}", number));
    fields.push_back(one_line(h.text));
    if (form.alignment) fields.push_back(pharaoh(h.alignment));
    if (form.word_scores) fields.push_back(word_scores(h));
    if (form.n_best || form.scores) fields.push_back(fmt::format("{:.6f}", h.score));
    lines += fmt::format("{}\n", fmt::join(fields, " ||| "));
  }
  return lines;
}

}  // namespace qkv
