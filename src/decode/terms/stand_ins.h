// Characters of the vocabulary that stand for protected parts, in the source and in its translation, for models that
// were trained with them: TranslationConfig::stand_ins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/search/forced.h"
#include "decode/search/hypothesis.h"
#include "decode/terms/kept_parts.h"
#include "decode/terms/protected_parts.h"
#include "io/runs/translation_config.h"
#include "qkv/translator.h"

namespace qkv {

// Adds the reserved characters of a text to its protected parts, which stay in order and do not overlap.
void protect_reserved(std::string_view text, std::span<const std::string> reserved, std::vector<ProtectedPart>& parts);

// Replaces the parts of a sentence by characters, of which there are at least as many, in their order. in_lower_case:
// the rest gets lower case.
ReducedText stand_in(std::string_view text, std::span<const ProtectedPart> parts, std::span<const StandIn> stand_ins,
                     bool in_lower_case);

// Returns the places of the stand-ins that a translation has more often than its source, each with the piece before it
// that is only the mark of a word's beginning.
std::vector<size_t> surplus_stand_ins(std::span<const int32_t> source, std::span<const int32_t> translation,
                                      const TranslationTokens& tokens, const Tokenizer& target);

// Remove tokens of these places, in increasing order, from a translation and from its attention weights.
Decoded without_tokens(const Decoded& translation, std::span<const size_t> places);
Forced without_tokens(const Forced& translation, std::span<const size_t> places, size_t source_tokens);

// Returns whether the translation has the stand-ins of all parts.
bool has_stand_ins(std::span<const KeptPart> kept, std::span<const int32_t> translation,
                   std::span<const StandIn> stand_ins);

// Puts parts, which all have a stand-in, in its place in a translation, where each stand-in occurs once at most. Parts
// without one are put back as others are (kept_parts.h), but are no further tokens of the source. Each is a token of
// the translation, aligned with its token of the source. source: the text with the stand-ins, with its tokens.
void replace_stand_ins(std::span<const KeptPart> kept, std::string_view source,
                       const std::vector<std::string>& source_tokens, bool has_attention, Hypothesis& translation);

}  // namespace qkv
