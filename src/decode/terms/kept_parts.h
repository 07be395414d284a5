// Parts of a sentence that are not translated: they are taken out of the source and put back into its translation,
// where the alignment says.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/terms/protected_parts.h"
#include "qkv/translator.h"

namespace qkv {

struct KeptPart {
  std::string text;
  size_t at = 0;  // byte of the rest before which it stood
  bool space_before = false, space_after = false;
  bool touches_word = false;                // after it
  bool follows_word = false;                // without a space
  std::string stand_in = {};                // character of the rest that stands for it (stand_ins.h); "": none
  std::optional<size_t> source_token = {};  // that the source has for it already
};

// A sentence without parts: the rest, which is translated.
struct ReducedText {
  std::string text;
  std::vector<KeptPart> kept;  // in their order

  void append(std::string_view rest, bool in_lower_case);
};

// Takes parts out of a sentence. Quotation marks and brackets around a part go with it, as do marks and white space
// between two parts. in_lower_case: the rest gets lower case.
ReducedText take_out(std::string_view text, std::span<const ProtectedPart> parts, bool in_lower_case);

// Puts parts back into a translation of the rest, each once, in their order, where the alignment says; if there is
// none, at about the same place. Each is one more token, of log-probability 0, of the source and of the translation,
// aligned with itself; of the translation only, if it has a token of the source already. source: the rest, with its
// tokens. has_attention: the hypothesis has attention weights.
void put_back(std::span<const KeptPart> kept, std::string_view source, const std::vector<std::string>& source_tokens,
              bool has_attention, Hypothesis& translation);

// Returns the tokens of the source with the parts, in the places of their stand-ins if they have any.
std::vector<std::string> tokens_with(std::span<const KeptPart> kept, std::string_view source,
                                     std::vector<std::string> source_tokens);

}  // namespace qkv
