// Results as JSON, as the program prints them with --json and the server answers: one object, without a line end. Bytes
// that are not UTF-8 become U+FFFD.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qkv/classifier.h"
#include "qkv/generator.h"
#include "qkv/translator.h"

namespace qkv {

// The members of a hypothesis in addition to its text, tokens and scores.
struct TranslationJsonForm {
  bool word_scores = false, alignment = true, attention = false;
};

// Returns {"source", "source_tokens", "pivot", "hypotheses"}, with "pivot" for a chain of models only. docs/decoding.md
// describes the members.
std::string translation_to_json(const Translation& translation, const TranslationJsonForm& form = {});
// Returns the same with "file", the name of the file of the source, as the first member.
std::string summary_to_json(const std::string& file, const Translation& summary);

// Returns {"prompt", "text", "end", "tokens"}. A token has "text", "log_probability" and its alternatives, if there are
// any.
std::string generation_to_json(const std::string& prompt, const Generation& generation);

// Returns {"text", "vector"}. Numbers have the fewest digits that read back as the same float32.
std::string embedding_to_json(const std::string& text, std::span<const float> vector);

// Returns {"text", "pair", "labels"}, without "pair" for a single text. labels: those of the classifier. Scores have
// the fewest digits that read back as the same float32.
std::string classification_to_json(const ClassifierInput& input, std::span<const LabelScore> best,
                                   const std::vector<std::string>& labels);

// Returns {"query", "texts"}, with "index", "score" and "text" of each text of the ranking.
std::string ranking_to_json(const std::string& query, const std::vector<std::string>& texts, const Ranking& ranking);

// Returns {"error"}, the answer to a request that is refused. id: a JSON value that is returned as "id"; "": none.
std::string error_to_json(const std::string& message, const std::string& id = "");

}  // namespace qkv
