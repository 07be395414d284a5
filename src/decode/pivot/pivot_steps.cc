#include "decode/pivot/pivot_steps.h"

#include <string_view>
#include <utility>

#include "core/fail.h"
#include "decode/translator_state.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// Throws Error for options that only a chain of one can have.
void refuse_options(const TranslateOptions& options) {
  for (const auto& [name, given] :
       {std::pair{"attention", options.attention}, {"on_token", options.on_token != nullptr}})
    if (given) fail("{} cannot be combined with several models in a chain", name);
}

// Returns the text with U+FFFD in place of bytes that are not UTF-8: a model may generate them.
std::string repaired(std::string_view text) {
  std::string valid;
  for (size_t bad = find_invalid_utf8(text); bad != text.npos; bad = find_invalid_utf8(text)) {
    valid.append(text, 0, bad).append("\uFFFD");
    text.remove_prefix(bad + 1);
  }
  return valid.append(text);
}

// Returns the name of a text that a later model reads, in errors and notes.
std::string name_of_step(size_t step, const SourceLine& given, int64_t number) {
  std::string name = given.name;
  if (name.empty() && number >= 0) name = fmt::format("line {}", number + 1);
  return fmt::format("{}{}model {}", name, name.empty() ? "" : ", ", step + 1);
}

}  // namespace

void check_count(const std::vector<TranslateOptions>& options, size_t models) {
  if (options.size() != models)
    fail("options must be one for each of {} models in a chain (are {})", models, options.size());
}

PivotSteps::PivotSteps(std::vector<const Translator*> translators, std::vector<TranslateOptions> options)
    : translators_(std::move(translators)), options_(std::move(options)) {
  if (options_.empty()) options_.resize(count());
  check_count(options_, count());
  for (size_t step = 0; step < count(); step++) {
    TranslateOptions& own = options_[step];
    refuse_options(own);
    own.alignment = options_.back().alignment;
    if (step + 1 < count()) {
      own.n_best = 1;
      own.alternatives = false;
    }
    try {
      translator(step).check(own);
      rules_.push_back(translator(step).text.term_rules(own));
    } catch (const Error& error) {
      fail("model {} of the chain: {}", step + 1, error.what());
    }
    check_languages(step);
  }
}

const Translator::State& PivotSteps::translator(size_t step) const { return *translators_[step]->state_; }

// Throws Error if a language in between is missing. Those of the line may come with it.
void PivotSteps::check_languages(size_t step) const {
  const TranslationTokens& tokens = translator(step).text.tokens();
  const bool lacks_source =
      step > 0 && tokens.source_language != SourceLanguage::none && options_[step].source_language.empty();
  const bool lacks_target =
      step + 1 < count() && tokens.target_language != TargetLanguage::none && options_[step].target_language.empty();
  if (lacks_source || lacks_target)
    fail("model {} of the chain has several languages: its {} must be that of the text in between (is missing)",
         step + 1, lacks_source ? "source_language" : "target_language");
}

SourceLine PivotSteps::line(size_t step, const SourceLine& given, const Translation* before, int64_t number) const {
  const bool is_first = step == 0, is_last = step + 1 == count();
  SourceLine line{is_first ? given.text : repaired(before->text())};
  if (is_last) line.prefix = given.prefix, line.target_language = given.target_language;
  if (is_first) line.source_language = given.source_language;
  line.name = is_first ? given.name : name_of_step(step, given, number);
  line.keep = given.keep;
  if (is_first || !rules_.front().protected_parts) return line;
  for (const ProtectedPart& part : rules_.front().protected_parts->find(given.text))
    line.keep.push_back(given.text.substr(part.begin, part.end - part.begin));
  return line;
}

void PivotSteps::read(size_t step, Line& line) const {
  translator(step).text.read(line, options_[step], rules_[step]);
  for (LinePart& part : line.parts) part.step = step;
}

}  // namespace qkv
