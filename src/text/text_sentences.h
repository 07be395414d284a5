// A text of several lines as sentences with the white space around them, and translated sentences as a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/sentences.h"

namespace qkv {

struct SpacedSentence {
  std::string_view space;  // the white space before it
  std::string_view text;
};

// The sentences of a text, and the white space after the last one. Together they are all its bytes, in order.
struct TextSentences {
  std::vector<SpacedSentence> sentences;
  std::string_view space_after;
};

// Splits each line of a text. A sentence ends with its line. The result has views into the text.
TextSentences split_text_sentences(std::string_view text, const SentenceSplitter& splitter);

// Appends a sentence of a translation, whose source has `space` between it and the sentence before. White space stays
// as it is. No space or a single space becomes what the language of the translation has between sentences: nothing in
// Chinese and Japanese, one space otherwise, and nothing next to an empty text.
void append_sentence(std::string& text, std::string_view space, std::string_view sentence);

}  // namespace qkv
