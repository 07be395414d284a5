#include "decode/terms/glossary.h"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/ascii.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "qkv/translator.h"
#include "text/line_file.h"
#include "text/sentence_characters.h"
#include "text/sentence_context.h"
#include "text/unicode.h"
#include "text/visible.h"

namespace qkv {
namespace {

using sentence::Character;
using sentence::character_at;

bool is_ascii_only(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Calls one of ICU's functions that map the case of UTF-8.
template <class Map>
std::string map_case_of_term(std::string_view text, Map&& map) {
  std::string mapped;
  icu::StringByteSink<std::string> sink(&mapped);
  UErrorCode status = U_ZERO_ERROR;
  map(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, status);
  if (U_FAILURE(status)) fail("case of a term: {} on a text of {} bytes", u_errorName(status), text.size());
  return mapped;
}

std::string folded_case(std::string_view text) {
  return map_case_of_term(text, [](const auto& from, auto& to, UErrorCode& status) {
    icu::CaseMap::utf8Fold(U_FOLD_CASE_DEFAULT, from, to, nullptr, status);
  });
}

std::string upper_case_term(std::string_view text) {
  return map_case_of_term(text, [](const auto& from, auto& to, UErrorCode& status) {
    icu::CaseMap::utf8ToUpper("", 0, from, to, nullptr, status);
  });
}

// Returns the term with its first character in upper case: "Ss" for "ß".
std::string capitalized_term(std::string_view text) {
  return map_case_of_term(text, [](const auto& from, auto& to, UErrorCode& status) {
    constexpr uint32_t kFirst = U_TITLECASE_WHOLE_STRING | U_TITLECASE_NO_LOWERCASE | U_TITLECASE_NO_BREAK_ADJUSTMENT;
    icu::CaseMap::utf8ToTitle("", kFirst, nullptr, from, to, nullptr, status);
  });
}

template <class Predicate>
int64_t count_characters_if(std::string_view text, Predicate&& predicate) {
  int64_t count = 0;
  for (Character c = character_at(text, 0); c.begin < text.size(); c = character_at(text, c.end))
    count += predicate(c.code);
  return count;
}

bool has_upper_case(std::string_view text) { return count_characters_if(text, sentence::is_upper) > 0; }

bool is_all_upper_case(std::string_view text) {
  return count_characters_if(text, sentence::is_upper) >= 2 && count_characters_if(text, sentence::is_lower) == 0;
}

// Returns whether a character is not displayed: soft hyphens, joiners, variation selectors.
bool is_ignorable(UChar32 c) { return c >= 0xAD && u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT) != 0; }

bool is_word_part(UChar32 c) {
  return c >= 0 && (sentence::is_letter(c) || sentence::is_combining(c) || (U_GET_GC_MASK(c) & U_GC_N_MASK) != 0);
}

// Returns whether a character belongs to the one before it.
bool is_attached(UChar32 c) { return c >= 0x80 && (sentence::is_combining(c) || is_ignorable(c)); }

// Returns the end of the run of characters from a place on that satisfy a condition.
template <class Predicate>
size_t end_of_run(std::string_view text, size_t begin, Predicate&& predicate) {
  while (begin < text.size()) {
    const Character c = character_at(text, begin);
    if (!predicate(c.code)) break;
    begin = c.end;
  }
  return begin;
}

// Returns the end of the token at a place: a run of white space, a word, or another character, with what is attached.
size_t end_of_term_token(std::string_view text, size_t begin) {
  const Character first = character_at(text, begin);
  if (first.code < 0) return first.end;
  if (sentence::is_blank(first.code))
    return end_of_run(text, first.end, [](UChar32 c) { return sentence::is_blank(c) || is_ignorable(c); });
  if (is_word_part(first.code) && sentence::has_spaced_words(first.code))
    return end_of_run(text, first.end,
                      [](UChar32 c) { return is_attached(c) || (is_word_part(c) && sentence::has_spaced_words(c)); });
  return end_of_run(text, first.end, is_attached);
}

// Returns a token as it is compared with case: decomposed, without ignorable characters. " " for white space, "" for a
// token that matches none.
std::string written_token(std::string_view token) {
  if (sentence::is_blank(character_at(token, 0).code)) return " ";
  if (is_ascii_only(token)) return std::string(token);
  if (find_invalid_utf8(token) != token.npos) return "";
  std::string visible;
  for (Character c = character_at(token, 0); c.begin < token.size(); c = character_at(token, c.end))
    if (!is_ignorable(c.code)) visible.append(token, c.begin, c.end - c.begin);
  return decompose(visible);
}

// Returns a token as it is compared without case; written: as written_token() returns it.
std::string folded_token(const std::string& written) {
  return is_ascii_only(written) ? ascii_lower(written) : decompose(folded_case(written));
}

bool is_empty_term(std::string_view text) {
  return count_characters_if(text, [](UChar32 c) { return !sentence::is_blank(c) && !is_ignorable(c); }) == 0;
}

// Removes white space from both ends.
std::string_view trimmed_term(std::string_view text) {
  return sentence::without_blanks(text.substr(sentence::skip_blanks(text, 0)));
}

bool is_escape(std::string_view text, size_t at) {
  return text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '|' || text[at + 1] == '\\');
}

// Returns the alternatives of a column, as they are written.
std::vector<std::string_view> split_alternatives(std::string_view column) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t i = 0; i < column.size(); i++) {
    if (is_escape(column, i)) {
      i++;
    } else if (column[i] == '|') {
      parts.push_back(column.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(column.substr(begin));
  return parts;
}

std::string without_escapes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); i++) {
    if (is_escape(text, i)) i++;
    plain += text[i];
  }
  return plain;
}

// Appends a term as a column of a glossary's line. Throws Error, naming the entry, unless it can be one.
void append_column(std::string& line, const std::string& term, size_t entry, const char* what) {
  if (is_empty_term(term)) fail("glossary: entry {}: the {} is empty, expected text", entry, what);
  if (term.find_first_of("\t\r\n") != term.npos)
    fail("glossary: entry {}: the {} must have no tab and no line end (is {})", entry, what, excerpt(term));
  if (term.starts_with('#')) line += ' ';
  for (const char c : term) {
    if (c == '|' || c == '\\') line += '\\';
    line += c;
  }
}

template <class T>
void append_if_new(std::vector<T>& list, T value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(std::move(value));
}

}  // namespace

// A tree of terms by their tokens, in two parts: terms that are compared with case, and those without.
class GlossaryTree {
 public:
  static constexpr int32_t kNone = -1;
  enum Part : uint32_t { written, folded };  // also the nodes of their roots

  // A token of a text.
  struct Token {
    size_t begin, end;
    std::array<uint32_t, 2> words;  // numbers of the token in each part
  };

  struct Found {
    size_t tokens = 0;  // 0: none
    int32_t entry = kNone;
  };

  GlossaryTree() : nodes_(2) {}

  // Adds a term, still without an entry, and returns its node.
  uint32_t add(std::string_view term) { return add(term, has_upper_case(term) ? written : folded); }

  // Assigns an entry to a term that was added.
  void assign(std::string_view term, uint32_t node, int32_t entry) {
    nodes_[node].entry = entry;
    if (!has_upper_case(term)) return;
    Node& upper = nodes_[add(upper_case_term(term), written)];
    if (upper.entry_in_upper_case == kNone) upper.entry_in_upper_case = entry;
  }

  std::vector<Token> tokens_of(std::string_view text) const {
    std::vector<Token> tokens;
    std::unordered_map<std::string_view, std::array<uint32_t, 2>> known;
    for (size_t begin = 0, end; begin < text.size(); begin = end) {
      end = end_of_term_token(text, begin);
      const std::string_view token = text.substr(begin, end - begin);
      const auto [found, is_new] = known.try_emplace(token);
      if (is_new) found->second = words_of(token);
      tokens.push_back({begin, end, found->second});
    }
    return tokens;
  }

  // Returns the longest term at a place of a text. The case decides between two terms of the same length.
  Found longest(const std::vector<Token>& tokens, size_t first) const {
    Found found;
    for (const Part part : {written, folded}) {
      uint32_t node = part;
      for (size_t i = first; i < tokens.size() && step(node, tokens[i].words[part]); i++) {
        const int32_t entry = entry_of(nodes_[node]);
        if (const size_t count = i + 1 - first; entry != kNone && count > found.tokens) found = {count, entry};
      }
    }
    return found;
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;  // word

  struct Node {
    int32_t entry = kNone;
    int32_t entry_in_upper_case = kNone;  // of a term that is written in another way
    uint32_t first_word = kUnknown;       // of the first child: most nodes have no other
    uint32_t first_child = 0;
  };

  static int32_t entry_of(const Node& node) { return node.entry != kNone ? node.entry : node.entry_in_upper_case; }
  static uint64_t edge(uint32_t node, uint32_t word) { return uint64_t{node} << 32 | word; }

  uint32_t add(std::string_view term, Part part) {
    uint32_t node = part;
    for (size_t begin = 0, end; begin < term.size(); begin = end) {
      end = end_of_term_token(term, begin);
      std::string token = written_token(term.substr(begin, end - begin));
      if (part == folded) token = folded_token(token);
      if (!token.empty()) node = add_child(node, std::move(token));
    }
    return node;
  }

  uint32_t add_child(uint32_t node, std::string token) {
    const uint32_t word = words_.try_emplace(std::move(token), static_cast<uint32_t>(words_.size())).first->second;
    uint32_t child = node;
    if (step(child, word)) return child;
    child = static_cast<uint32_t>(nodes_.size());
    if (nodes_[node].first_word == kUnknown) {
      nodes_[node].first_word = word;
      nodes_[node].first_child = child;
    } else {
      other_children_.emplace(edge(node, word), child);
    }
    nodes_.emplace_back();
    return child;
  }

  uint32_t word_of(const std::string& token) const {
    const auto found = words_.find(token);
    return found == words_.end() ? kUnknown : found->second;
  }

  std::array<uint32_t, 2> words_of(std::string_view token) const {
    const std::string with_case = written_token(token);
    return {word_of(with_case), word_of(folded_token(with_case))};
  }

  // Moves to a child; false if there is none.
  bool step(uint32_t& node, uint32_t word) const {
    if (word == kUnknown) return false;
    if (nodes_[node].first_word == word) {
      node = nodes_[node].first_child;
      return true;
    }
    const auto child = other_children_.find(edge(node, word));
    if (child == other_children_.end()) return false;
    node = child->second;
    return true;
  }

  std::vector<Node> nodes_;
  std::unordered_map<std::string, uint32_t> words_;        // numbers of the tokens
  std::unordered_map<uint64_t, uint32_t> other_children_;  // by edge(): those after the first of a node
};

namespace {

// A reader of a glossary's lines. Afterwards it unites the lines that have the same source.
class GlossaryReader {
 public:
  GlossaryReader(const std::string& name, GlossaryTree& tree) : name_(in_one_line(name)), tree_(tree) {}

  void read(std::string_view text) {
    if (text.size() > Glossary::kMostBytes)
      fail("{}: has {} bytes, expected at most {}", name_, text.size(), Glossary::kMostBytes);
    if (text.starts_with("\uFEFF")) text.remove_prefix(3);
    for (number_ = 1; !text.empty(); number_++) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      read_line(line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  // Returns the entries, and assigns them to their terms in the tree.
  std::vector<GlossaryEntry> take_entries() {
    std::vector<GlossaryEntry> entries;
    std::map<std::vector<uint32_t>, size_t> places;  // of entries, by their lines
    for (uint32_t i = 0; i < lines_.size(); i++)
      for (size_t source = 0; source < lines_[i].entry.sources.size(); source++) {
        const uint32_t node = lines_[i].nodes[source];
        const std::vector<uint32_t>& same = lines_of_[node];
        if (same.front() != i) continue;
        const auto [place, is_new] = places.try_emplace(same, entries.size());
        const std::string& term = lines_[i].entry.sources[source];
        if (is_new) entries.push_back(united(same, term));
        entries[place->second].sources.push_back(term);
        tree_.assign(term, node, static_cast<int32_t>(place->second));
      }
    return entries;
  }

 private:
  struct Line {
    GlossaryEntry entry;
    std::vector<uint32_t> nodes = {};  // of the sources
  };

  template <class... Args>
  [[noreturn]] void fail_line(fmt::format_string<Args...> format, Args&&... args) const {
    fail("{}:{}: {}", name_, number_, fmt::format(format, std::forward<Args>(args)...));
  }

  void read_line(std::string_view line) {
    check_bytes(line);
    if (line.starts_with('#') || end_of_run(line, 0, sentence::is_blank) == line.size()) return;
    const size_t tab = line.find('\t');
    if (tab == line.npos)
      fail_line("has no tab; expected a source term, a tab and a target term (CSV is not accepted)");
    if (lines_.size() == Glossary::kMostEntries)
      fail_line("is entry {}, expected at most {}", lines_.size() + 1, lines_.size());
    const std::string_view target = line.substr(tab + 1);
    add({forms_of(line.substr(0, tab), "source"), forms_of(target.substr(0, target.find('\t')), "target"), number_});
  }

  void check_bytes(std::string_view line) const {
    const std::string_view beginning = number_ == 1 ? line : "";
    if (const size_t invalid = find_invalid_utf8(line); invalid != line.npos)
      fail_line("byte {} of the line is not valid UTF-8{}", invalid + 1, encoding_hint(beginning));
    if (const size_t nul = line.find('\0'); nul != line.npos)
      fail_line("byte {} of the line is NUL, expected UTF-8 text{}", nul + 1, mark_hint(beginning));
  }

  // Returns the alternatives of a column.
  std::vector<std::string> forms_of(std::string_view column, std::string_view what) const {
    const std::vector<std::string_view> parts = split_alternatives(column);
    if (parts.size() > Glossary::kMostForms)
      fail_line("the {} has {} alternatives, expected at most {}", what, parts.size(), Glossary::kMostForms);
    std::vector<std::string> forms;
    for (const std::string_view part : parts) {
      std::string form = without_escapes(trimmed_term(part));
      check_form(form, parts.size() > 1 ? fmt::format("an alternative of the {}", what) : fmt::format("the {}", what));
      append_if_new(forms, std::move(form));
    }
    return forms;
  }

  void check_form(const std::string& form, const std::string& what) const {
    if (is_empty_term(form)) fail_line("{} is empty, expected text", what);
    if (form.size() > Glossary::kMostTermBytes)
      fail_line("{} has {} bytes, expected at most {}", what, form.size(), Glossary::kMostTermBytes);
  }

  // Adds the entry of a line without the sources that match the same texts as others of the line.
  void add(GlossaryEntry entry) {
    const auto place = static_cast<uint32_t>(lines_.size());
    Line line{std::move(entry)};
    std::erase_if(line.entry.sources, [&](const std::string& source) {
      const uint32_t node = tree_.add(source);
      std::vector<uint32_t>& lines = lines_of_[node];
      if (!lines.empty() && lines.back() == place) return true;
      lines.push_back(place);
      line.nodes.push_back(node);
      return false;
    });
    lines_.push_back(std::move(line));
  }

  // Returns an entry with the targets of several lines that have the same source.
  GlossaryEntry united(const std::vector<uint32_t>& lines, const std::string& source) {
    GlossaryEntry entry = {{}, lines_[lines[0]].entry.targets, lines_[lines[0]].entry.line};
    for (const uint32_t i : lines) {
      number_ = lines_[i].entry.line;
      for (const std::string& target : lines_[i].entry.targets) append_if_new(entry.targets, target);
      if (entry.targets.size() > Glossary::kMostForms)
        fail_line("\"{}\" has {} targets in the lines {} to {}, expected at most {}", in_one_line(source),
                  entry.targets.size(), entry.line, number_, Glossary::kMostForms);
    }
    for (const std::string& target : entry.targets) bytes_ += lines.size() > 1 ? target.size() : 0;
    if (bytes_ > Glossary::kMostBytes)
      fail_line("the targets of sources that occur in several lines have more than {} bytes", Glossary::kMostBytes);
    return entry;
  }

  std::string name_;
  GlossaryTree& tree_;
  size_t number_ = 0;  // of the present line, from 1
  std::vector<Line> lines_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> lines_of_;  // places of the lines with a source, by its node
  size_t bytes_ = 0;                                              // of targets that were copied
};

}  // namespace

Glossary Glossary::parse(std::string_view text, const std::string& name) {
  const auto tree = std::make_shared<GlossaryTree>();
  GlossaryReader reader(name, *tree);
  reader.read(text);
  Glossary glossary;
  glossary.entries_ = reader.take_entries();
  if (!glossary.empty()) glossary.tree_ = tree;
  return glossary;
}

std::vector<GlossaryMatch> Glossary::find(std::string_view text) const {
  std::vector<GlossaryMatch> matches;
  if (empty()) return matches;
  const std::vector<GlossaryTree::Token> tokens = tree_->tokens_of(text);
  for (size_t i = 0; i < tokens.size();) {
    const GlossaryTree::Found found = tree_->longest(tokens, i);
    if (found.tokens > 0) matches.push_back({tokens[i].begin, tokens[i + found.tokens - 1].end, to_size(found.entry)});
    i += std::max<size_t>(found.tokens, 1);
  }
  return matches;
}

std::string read_glossary(const std::string& path) {
  constexpr int64_t kLines = 1024;  // of a chunk
  size_t bytes = 0;
  const LineFile file(path, kLines, [&](int64_t, std::string_view line) {
    bytes += line.size() + 1;
    if (bytes > Glossary::kMostBytes)
      fail("{}: a glossary has at most {} bytes, this one has more", in_one_line(path), Glossary::kMostBytes);
  });
  std::string text;
  for (int64_t chunk = 0; chunk < file.chunks(); chunk++) text += file.bytes(chunk);
  Glossary::parse(text, path);
  return text;
}

std::string glossary_text(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text;
  for (size_t i = 0; i < entries.size(); i++) {
    append_column(text, entries[i].first, i + 1, "source");
    text += '\t';
    append_column(text, entries[i].second, i + 1, "target");
    text += '\n';
  }
  return text;
}

std::vector<std::string> target_spellings(std::string_view matched_source, const GlossaryEntry& entry) {
  std::vector<std::string> spellings;
  if (is_all_upper_case(matched_source) && std::ranges::none_of(entry.sources, is_all_upper_case))
    for (const std::string& target : entry.targets) append_if_new(spellings, upper_case_term(target));
  for (const std::string& target : entry.targets) {
    append_if_new(spellings, target);
    if (sentence::is_lower(character_at(target, 0).code)) append_if_new(spellings, capitalized_term(target));
  }
  return spellings;
}

}  // namespace qkv
