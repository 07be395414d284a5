#include "program/lines/result_json.h"

#include <fmt/format.h>

#include <charconv>

#include "core/json.h"
#include "core/to_size.h"
#include "program/lines/request_json.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

// Lists and objects are made before they are filled: without memory, one that nlohmann makes of null ends the program.

ordered_json pairs_json(const std::vector<SentencePair>& sentences) {
  ordered_json json = ordered_json::array();
  for (const SentencePair& s : sentences) json.push_back({{"source", s.source}, {"text", s.text}});
  return json;
}

ordered_json hypothesis_json(const Hypothesis& h, const TranslationJsonForm& form) {
  ordered_json json = {{"text", h.text},
                       {"tokens", h.tokens},
                       {"score", h.score},
                       {"log_probability", h.log_probability},
                       {"token_scores", h.token_scores}};
  if (form.word_scores && !h.words.empty()) {
    json["words"] = ordered_json::array();
    for (const WordScore& w : h.words)
      json["words"].push_back({{"word", w.word}, {"log_probability", w.log_probability}});
  }
  if (form.alignment) {
    json["alignment"] = ordered_json::array();
    for (const Alignment& a : h.alignment) json["alignment"].push_back({a.source, a.target});
  }
  if (form.attention) json["attention"] = h.attention;
  if (!h.sentences.empty()) json["sentences"] = pairs_json(h.sentences);
  if (!h.missing_terms.empty()) json["missing_terms"] = h.missing_terms;
  if (!h.untranslated.empty()) json["untranslated"] = pairs_json(h.untranslated);
  return json;
}

ordered_json token_json(const GeneratedToken& token) {
  ordered_json json = {{"text", token.text}, {"log_probability", token.log_probability}};
  if (!token.alternatives.empty()) json["alternatives"] = ordered_json::array();
  for (const TokenAlternative& other : token.alternatives)
    json["alternatives"].push_back(
        {{"text", other.text}, {"log_probability", other.log_probability}, {"end", other.end}});
  return json;
}

// Adds the members of a translation to an object.
void add_translation(ordered_json& json, const Translation& translation, const TranslationJsonForm& form) {
  json["source"] = translation.source;
  if (!translation.source_prefix.empty()) json["source_prefix"] = translation.source_prefix;
  json["source_tokens"] = translation.source_tokens;
  if (!translation.pivot.empty()) json["pivot"] = translation.pivot;
  json["hypotheses"] = ordered_json::array();
  for (const Hypothesis& h : translation.hypotheses) json["hypotheses"].push_back(hypothesis_json(h, form));
}

// Returns the number with the fewest digits that are read back as this float32.
double shortest_decimal(float x) {
  const std::string digits = fmt::format("{}", x);
  double number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

std::string translation_to_json(const Translation& translation, const TranslationJsonForm& form) {
  ordered_json json = ordered_json::object();
  add_translation(json, translation, form);
  return json_text(json);
}

std::string summary_to_json(const std::string& file, const Translation& summary) {
  ordered_json json = {{"file", file}};
  add_translation(json, summary, {.alignment = false});
  return json_text(json);
}

std::string generation_to_json(const std::string& prompt, const Generation& generation) {
  ordered_json tokens = ordered_json::array();
  for (const GeneratedToken& token : generation.tokens) tokens.push_back(token_json(token));
  return json_text({{"prompt", prompt},
                    {"text", generation.text},
                    {"end", names_of(generation.end)[static_cast<size_t>(generation.end)]},
                    {"tokens", std::move(tokens)}});
}

std::string embedding_to_json(const std::string& text, std::span<const float> vector) {
  return fmt::format("{{\"text\": {}, \"vector\": [{}]}}", with_escaped_line_ends(json_string(text)),
                     fmt::join(vector, ", "));
}

std::string classification_to_json(const ClassifierInput& input, std::span<const LabelScore> best,
                                   const std::vector<std::string>& labels) {
  ordered_json json = {{"text", input.text}};
  if (input.pair) json["pair"] = *input.pair;
  json["labels"] = ordered_json::array();
  for (const auto& [label, score] : best)
    json["labels"].push_back({{"label", labels[to_size(label)]}, {"score", shortest_decimal(score)}});
  return json_text(json);
}

std::string ranking_to_json(const std::string& query, const std::vector<std::string>& texts, const Ranking& ranking) {
  ordered_json ranked = ordered_json::array();
  for (const auto& [index, score] : ranking.texts)
    ranked.push_back({{"index", index}, {"score", shortest_decimal(score)}, {"text", texts[to_size(index)]}});
  return json_text({{"query", query}, {"texts", std::move(ranked)}});
}

std::string error_to_json(const std::string& message, const std::string& id) {
  return json_text_with_id(id, {{"error", message}});
}

}  // namespace qkv
