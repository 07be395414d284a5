// Translation through languages in between ("pivot"): a chain of translators, each of which reads the translations of
// the one before it, such as de-en and en-fr for German to French. docs/decoding.md describes it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "qkv/translator.h"

namespace [[gnu::visibility("default")]] qkv {

// A chain of translators. Methods are thread-safe; each call uses the thread pool internally.
//
// Each translator has options of its own: `options` has one entry for each, or none for the defaults. A chain
// translates the best hypothesis on. So n_best, alternatives and prefixes are those of the last translator, and the
// others return one hypothesis. `window`, `batch_tokens`, `workers` and the callbacks are those of the first one.
// A glossary has terms of the text that its translator reads. Several translators cannot have attention or on_token. A
// chain of one has all options, and the results of that translator.
class PivotTranslator {
 public:
  // Throws Error if there is no translator.
  explicit PivotTranslator(std::vector<Translator> translators);
  ~PivotTranslator();
  PivotTranslator(PivotTranslator&&) noexcept;
  PivotTranslator& operator=(PivotTranslator&&) noexcept;

  const std::vector<Translator>& translators() const { return translators_; }

  // Sets the languages of options that all have the source and the target of the whole chain: the first keep the
  // source, the last the target, and those in between are `between`, one for each text in between, where a model reads
  // or needs them. Throws Error unless there are options for each translator, and unless `between` is empty or has one
  // entry for each text in between.
  void set_languages(std::vector<TranslateOptions>& options, const std::vector<std::string>& between = {}) const;

  // Translates lines, as Translator::translate does; result i belongs to line i. Each model splits its text into
  // sentences by itself. A protected part of a line is protected in the texts in between, too. Translation::pivot has
  // those texts. A hypothesis has the tokens, the token scores and the words of the last model, with an alignment to
  // the tokens of the line; its score and log_probability are the sums over all models. Its `sentences` are those of
  // the line, and empty if a sentence of a text in between is no part of a sentence before it. `missing_terms`,
  // `untranslated` and the notes are those of all models, in order: `untranslated` has sentences of the text that each
  // model reads, with its translations of them, and notes of later models have the number of the model, such as
  // "line 3, model 2: …". Throws Error as Translator::translate does, and for options that a chain cannot have.
  std::vector<Translation> translate(const std::vector<std::string>& lines,
                                     const std::vector<TranslateOptions>& options = {},
                                     const std::vector<std::string>& prefixes = {}) const;

  // Translates a stream of lines, as Translator::translate does. All models work on the lines of one window at the same
  // time. A line's own source language is that of the first model, its target language that of the last.
  void translate(const LineSource& read, const std::function<void(Translation&&)>& write,
                 const std::vector<TranslateOptions>& options = {}) const;

 private:
  std::vector<Translator> translators_;
};

}  // namespace qkv
