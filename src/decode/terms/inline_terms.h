// Translations of terms in the source itself, for models that were trained with them: Dinu et al., "Training Neural
// Machine Translation to Apply Terminology Constraints" (2019). The translation follows its term, between two
// characters that nothing else contains: TranslationConfig::term_marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/terms/glossary.h"
#include "io/runs/translation_config.h"
#include "qkv/translator.h"

namespace qkv {

// Returns the translation of a term as a source has it after the term.
std::string inline_term(std::string_view translation, std::string_view before, std::string_view after);

// Returns the text with the preferred translation of each of its terms after it, unless this has a reserved character.
std::string with_inline_terms(std::string_view text, const Glossary& glossary, const TermMarks& marks,
                              std::span<const std::string> reserved);

// The places of a source's tokens among those that are its own, without translations of terms.
class OwnTokens {
 public:
  OwnTokens(std::span<const int32_t> source, const TermMarks& marks);

  size_t size() const { return own_.size(); }
  size_t others() const { return place_.size() - own_.size(); }
  std::vector<int32_t> of(std::span<const int32_t> source) const;
  // Changes alignment and attention weights from all tokens to own ones: the tokens of a translation count as the last
  // token of their term.
  void apply(std::vector<Alignment>& alignment, std::vector<std::vector<float>>& attention) const;

 private:
  std::vector<size_t> own_;    // places in the source
  std::vector<size_t> place_;  // among the own tokens, of each token of the source
};

}  // namespace qkv
