#include "text/tokenizer_json/word_pattern.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <cstdint>
#include <limits>

#include "core/to_size.h"

namespace qkv {
namespace {

struct Pattern {
  WordPattern name;
  std::string_view expression;
  bool modern = true;  // letters may follow any character, breaks of lines end words, contractions have any case
  bool marks = false;  // are letters
  size_t digits = std::numeric_limits<size_t>::max();  // of a word at most
};

constexpr Pattern kPatterns[] = {
    {.name = WordPattern::gpt2,
     .expression = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     .modern = false},
    {.name = WordPattern::llama3,
     .expression = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                   R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     .digits = 3},
    {.name = WordPattern::qwen2,
     .expression = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                   R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     .digits = 1},
    {.name = WordPattern::qwen3_5,
     .expression =
         R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
         R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     .marks = true,
     .digits = 1}};

enum class Kind { letter, mark, number, space, other, end };

Kind kind_of(UChar32 c) {
  if (c < 0x80) {
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return Kind::letter;
    if (c >= '0' && c <= '9') return Kind::number;
    return c == ' ' || (c >= 9 && c <= 13) ? Kind::space : Kind::other;
  }
  const uint32_t category = U_GET_GC_MASK(c);
  if (category & U_GC_L_MASK) return Kind::letter;
  if (category & U_GC_N_MASK) return Kind::number;
  if (category & U_GC_M_MASK) return Kind::mark;
  return u_isUWhiteSpace(c) ? Kind::space : Kind::other;
}

// One character of a text.
struct ClassedCharacter {
  UChar32 code = -1;
  Kind kind = Kind::end;
  size_t end = 0;  // the place behind it

  bool breaks_line() const { return code == '\r' || code == '\n'; }
};

class Scanner {
 public:
  Scanner(const Pattern& pattern, std::string_view text) : pattern_(pattern), text_(text) {}

  // The end of the word that begins at `begin`: each branch is an alternative of the expression, in its order.
  size_t word(size_t begin) const {
    const ClassedCharacter first = at(begin);
    if (const size_t end = contraction(begin)) return end;
    const ClassedCharacter second = at(first.end);
    if (is_letter(first)) return run(begin, &Scanner::is_letter);
    if (is_letter(second) && leads_letters(first)) return run(first.end, &Scanner::is_letter);
    if (first.kind == Kind::number) return run(begin, &Scanner::is_number, pattern_.digits);
    if (!pattern_.modern && second.kind == Kind::number && first.code == ' ')
      return run(first.end, &Scanner::is_number, pattern_.digits);
    if (is_other(first)) return others(begin);
    if (is_other(second) && first.code == ' ') return others(first.end);
    return spaces(begin);
  }

 private:
  ClassedCharacter at(size_t place) const {
    if (place >= text_.size()) return {};
    ClassedCharacter c;
    auto end = static_cast<int64_t>(place);
    U8_NEXT_OR_FFFD(text_.data(), end, static_cast<int64_t>(text_.size()), c.code);
    c.end = to_size(end);
    c.kind = kind_of(c.code);
    if (c.kind == Kind::mark) c.kind = pattern_.marks ? Kind::letter : Kind::other;
    return c;
  }
  static bool is_letter(const ClassedCharacter& c) { return c.kind == Kind::letter; }
  static bool is_number(const ClassedCharacter& c) { return c.kind == Kind::number; }
  static bool is_other(const ClassedCharacter& c) { return c.kind == Kind::other; }

  bool leads_letters(const ClassedCharacter& c) const {
    return c.code == ' ' || (pattern_.modern && !c.breaks_line() && c.kind != Kind::number);
  }

  // The end of the run of characters from `place` for which `is` holds, up to the given length.
  size_t run(size_t place, bool (*is)(const ClassedCharacter&),
             size_t most = std::numeric_limits<size_t>::max()) const {
    for (ClassedCharacter c = at(place); most > 0 && is(c); c = at(place), most--) place = c.end;
    return place;
  }

  size_t others(size_t place) const {
    place = run(place, &Scanner::is_other);
    while (pattern_.modern && place < text_.size() && at(place).breaks_line()) place++;
    return place;
  }

  // White space up to its last line break; else all at the end of the text, or all but the last character.
  size_t spaces(size_t place) const {
    size_t last = place, after_break = 0, count = 0;
    for (ClassedCharacter c = at(place); c.kind == Kind::space; c = at(place), count++) {
      last = place;
      place = c.end;
      if (c.breaks_line()) after_break = place;
    }
    if (pattern_.modern && after_break > 0) return after_break;
    return place == text_.size() || count == 1 ? place : last;
  }

  // The end of 's, 't, 're, 've, 'm, 'll or 'd, or 0.
  size_t contraction(size_t place) const {
    if (text_[place] != '\'') return 0;
    if (pattern_.modern && text_.substr(place + 1).starts_with("\u017F")) return place + 3;  // ſ is an s in lower case
    char letters[2] = {};
    for (size_t i = 0; i < 2 && place + 1 + i < text_.size(); i++) {
      const char c = text_[place + 1 + i];
      letters[i] = static_cast<char>(pattern_.modern && c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    const std::string_view two(letters, 2);
    if (std::string_view("stmd").find(letters[0]) != std::string_view::npos) return place + 2;
    return two == "re" || two == "ve" || two == "ll" ? place + 3 : 0;
  }

  const Pattern& pattern_;
  std::string_view text_;
};

void split_digits(bool each, std::string_view text, std::vector<std::string_view>& words) {
  const auto length = static_cast<int64_t>(text.size());
  bool was_number = false;
  size_t begin = 0;
  for (int64_t i = 0; i < length;) {
    const auto place = to_size(i);
    UChar32 c;
    U8_NEXT_OR_FFFD(text.data(), i, length, c);
    const bool number = kind_of(c) == Kind::number;
    if (place > begin && (number != was_number || (number && each))) {
      words.push_back(text.substr(begin, place - begin));
      begin = place;
    }
    was_number = number;
  }
  if (begin < text.size()) words.push_back(text.substr(begin));
}

}  // namespace

std::optional<WordPattern> pattern_of(std::string_view expression) {
  for (const Pattern& pattern : kPatterns)
    if (pattern.expression == expression) return pattern.name;
  return {};
}

std::string_view expression_of(WordPattern name) {
  for (const Pattern& pattern : kPatterns)
    if (pattern.name == name) return pattern.expression;
  return "";
}

void split_words(WordPattern name, std::string_view text, std::vector<std::string_view>& words) {
  for (const Pattern& pattern : kPatterns) {
    if (pattern.name != name) continue;
    const Scanner scanner(pattern, text);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = scanner.word(begin);
      words.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    return;
  }
  split_digits(name == WordPattern::digit, text, words);
}

}  // namespace qkv
