#include "text/text_sentences.h"

#include <algorithm>

#include "text/sentence_characters.h"

namespace qkv {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

// Whether no space is needed after a text: it is empty, ends with white space, or is Chinese or Japanese. Marks belong
// to the language of what is before them.
bool needs_no_space(std::string_view text) {
  using namespace sentence;
  const auto is_mark = [](int32_t code) {
    return is_quote(code) || is_closing_bracket(code) || is_dash(code) || stop_of(code) != Stop::none;
  };
  Character last = character_before(text, text.size());
  if (text.empty() || is_blank(last.code)) return true;
  while (is_mark(last.code)) last = character_before(text, last.begin);
  return is_unspaced(last.code);
}

}  // namespace

TextSentences split_text_sentences(std::string_view text, const SentenceSplitter& splitter) {
  TextSentences found;
  const char* end_before = text.data();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    for (const std::string_view sentence : splitter.split(text.substr(begin, end - begin))) {
      found.sentences.push_back({between(end_before, sentence.data()), sentence});
      end_before = sentence.data() + sentence.size();
    }
    begin = end + 1;
  }
  found.space_after = between(end_before, text.data() + text.size());
  return found;
}

void append_sentence(std::string& text, std::string_view space, std::string_view sentence) {
  if (space.empty() || space == " ") space = sentence.empty() || needs_no_space(text) ? "" : " ";
  text.append(space).append(sentence);
}

}  // namespace qkv
