// The steps of a chain of translators: the text and the options of each, and the results of all of them as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decode/translation_text.h"
#include "qkv/translator.h"

namespace qkv {

// Returns the translation of a chain whose last model has translated the text of `before` as `last`. Takes the
// hypotheses of the last one, with the first one before.
Translation joined_steps(Translation before, Translation last);

// Throws Error unless there are options for each model of a chain.
void check_count(const std::vector<TranslateOptions>& options, size_t models);

class PivotSteps {
 public:
  // The translators of several steps, which must outlive this, with the options of each. Throws Error, naming the model
  // by its number in the chain, for options that a chain cannot have.
  PivotSteps(std::vector<const Translator*> translators, std::vector<TranslateOptions> options);

  size_t count() const { return translators_.size(); }
  const TranslateOptions& options(size_t step) const { return options_[step]; }
  const Translator::State& translator(size_t step) const;

  // Returns what the translator of a step reads: the line that was given, or behind the first step its translation so
  // far. Errors and notes of later steps name the model. number: of the line, from 0; negative: unknown. Throws Error
  // if the pattern of the protected parts takes too long for the line.
  SourceLine line(size_t step, const SourceLine& given, const Translation* before, int64_t number = -1) const;

  // Reads a line into its parts for a step. Throws Error, naming the line.
  void read(size_t step, Line& line) const;

 private:
  void check_languages(size_t step) const;

  const std::vector<const Translator*> translators_;
  std::vector<TranslateOptions> options_;
  std::vector<TermRules> rules_;
};

}  // namespace qkv
