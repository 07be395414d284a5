#include "text/tokenizer_json/pre_tokenizer.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/pieces/byte_pairs.h"
#include "text/tokenizer_json/bert_text.h"
#include "text/tokenizer_json/json_object.h"
#include "text/tokenizer_json/text_pattern.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;
using WordStep = std::function<void(Words&)>;

// Cuts each word by cut(text, parts), which appends views into text.
template <class Cutter>
WordStep each_word(Cutter cut) {
  return [cut](Words& words) {
    std::vector<Words::Word> all;
    std::vector<std::string_view> parts;
    for (const Words::Word& word : words.words) {
      parts.clear();
      cut(word.text, parts);
      for (const std::string_view part : parts) all.push_back({part, word.first && part.data() == word.text.data()});
    }
    words.words = std::move(all);
  };
}

WordStep cut_at(TextPattern pattern, SplitBehavior behavior, bool invert = false) {
  return each_word(
      [pattern = std::move(pattern), behavior, invert](std::string_view text, std::vector<std::string_view>& parts) {
        split_text(text, pattern, behavior, invert, parts);
      });
}

bool is_white(int32_t c) { return u_isUWhiteSpace(c); }
bool is_numeric(int32_t c) { return (U_GET_GC_MASK(c) & U_GC_N_MASK) != 0; }

// Runs of letters, marks, digits and the like, and runs of what is neither that nor white space: \w+|[^\w\s]+.
void cut_word_runs(std::string_view text, std::vector<std::string_view>& parts) {
  enum class Run { none, word, other };
  Run run = Run::none;
  int64_t begin = 0;
  const auto length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i <= length;) {
    const int64_t place = i;
    Run next = Run::none;
    if (i < length) {
      UChar32 c;
      U8_NEXT_OR_FFFD(text.data(), i, length, c);
      next = is_word_character(c) ? Run::word : u_isUWhiteSpace(c) ? Run::none : Run::other;
    } else {
      i++;
    }
    if (next == run) continue;
    if (run != Run::none) parts.push_back(text.substr(to_size(begin), to_size(place - begin)));
    begin = place;
    run = next;
  }
}

SplitBehavior read_behavior(const JsonObject& object, const std::string& otherwise) {
  const auto behavior = split_behavior(object.text("behavior", otherwise));
  if (!behavior)
    object.wrong("behavior", "\"Removed\", \"Isolated\", \"MergedWithPrevious\", \"MergedWithNext\" or \"Contiguous\"");
  return *behavior;
}

// Whether a word gets a space in front, and which of them.
enum class Prepend { never, first, always };

Prepend read_scheme(const JsonObject& object) {
  const bool spaced = object.flag("add_prefix_space", true);
  const std::string scheme = object.text("prepend_scheme", spaced ? "always" : "never");
  if (scheme == "never") return Prepend::never;
  if (!spaced) object.wrong("prepend_scheme", "\"never\", as add_prefix_space is false");
  if (scheme == "first") return Prepend::first;
  if (scheme != "always") object.wrong("prepend_scheme", "\"always\", \"first\" or \"never\"");
  return Prepend::always;
}

// Spaces become a character that is kept, which begins each word.
WordStep read_metaspace(const json& value, const std::string& where) {
  const JsonObject object(value, where,
                          {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
  const std::string mark = object.text("replacement");
  if (count_characters(mark) != 1) object.wrong("replacement", "a character");
  const Prepend scheme = read_scheme(object);
  const WordStep cut = cut_at(TextPattern(mark), SplitBehavior::merged_with_next);
  const bool splits = object.flag("split", true);
  return [mark, scheme, cut, splits, spaces = TextPattern(std::string(" "))](Words& words) {
    for (Words::Word& word : words.words) {
      std::string text = spaces.replace(word.text, mark);
      const bool spaced = scheme == Prepend::always || (scheme == Prepend::first && word.first);
      if (spaced && !text.empty() && !text.starts_with(mark)) text.insert(0, mark);
      word.text = words.changed.emplace_back(std::move(text));
    }
    if (splits) cut(words);
  };
}

WordStep read_byte_level(const json& value, const std::string& where) {
  const JsonObject object(value, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  const WordStep cut = each_word(
      [](std::string_view text, std::vector<std::string_view>& parts) { split_words(WordPattern::gpt2, text, parts); });
  return [cut, spaced = object.flag("add_prefix_space", true), cuts = object.flag("use_regex", true)](Words& words) {
    for (Words::Word& word : words.words)
      if (spaced && !word.text.empty() && !word.text.starts_with(' '))
        word.text = words.changed.emplace_back(std::string(" ").append(word.text));
    if (cuts) cut(words);
    for (Words::Word& word : words.words) word.text = words.changed.emplace_back(spell_bytes(word.text));
  };
}

WordStep read_fixed_length(const json& value, const std::string& where) {
  const JsonObject object(value, where, {"type", "length"});
  const int64_t size = object.integer("length", 5);
  if (size < 1) object.wrong("length", "an integer from 1");
  return each_word([size](std::string_view text, std::vector<std::string_view>& parts) {
    const auto length = static_cast<int64_t>(text.size());
    for (int64_t i = 0; i < length;) {
      const int64_t begin = i;
      for (int64_t n = 0; n < size && i < length; n++) U8_FWD_1(text.data(), i, length);
      parts.push_back(text.substr(to_size(begin), to_size(i - begin)));
    }
  });
}

WordStep read_word_step(const json& value, const std::string& where) {
  const std::string type = type_of(&value);
  if (type == "Metaspace") return read_metaspace(value, where);
  if (type == "ByteLevel") return read_byte_level(value, where);
  if (type == "FixedLength") return read_fixed_length(value, where);
  if (type == "Whitespace" || type == "WhitespaceSplit" || type == "BertPreTokenizer") {
    const JsonObject object(value, where, {"type"});
    if (type == "Whitespace") return each_word(cut_word_runs);
    if (type == "WhitespaceSplit") return cut_at(TextPattern(is_white), SplitBehavior::removed);
    return each_word(split_bert_words);
  }
  if (type == "Punctuation") {
    const JsonObject object(value, where, {"type", "behavior"});
    return cut_at(TextPattern(is_bert_punctuation), read_behavior(object, "Isolated"));
  }
  if (type == "Digits") {
    const JsonObject object(value, where, {"type", "individual_digits"});
    const bool each = object.flag("individual_digits", false);
    return cut_at(TextPattern(is_numeric), each ? SplitBehavior::isolated : SplitBehavior::contiguous);
  }
  if (type == "CharDelimiterSplit") {
    const JsonObject object(value, where, {"type", "delimiter"});
    return cut_at(TextPattern(object.text("delimiter")), SplitBehavior::removed);
  }
  if (type == "Split") {
    const JsonObject object(value, where, {"type", "pattern", "behavior", "invert"});
    if (!object.find("pattern")) object.wrong("pattern", "an object");
    if (!object.find("behavior")) object.wrong("behavior", "a string");
    return cut_at(TextPattern::read(*object.find("pattern"), object.at("pattern")), read_behavior(object, ""),
                  object.flag("invert", false));
  }
  fail(
      "{}: type is {}, expected Metaspace, ByteLevel, Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, "
      "Digits, Split, CharDelimiterSplit, FixedLength or Sequence",
      where, excerpt(type));
}

}  // namespace

PreTokenizer::PreTokenizer(const json* value, const std::string& where) {
  for (const auto& [step, place] : steps_of(value, where, "pretokenizers"))
    steps_.push_back(read_word_step(*step, place));
}

Words PreTokenizer::apply(std::string_view text, bool first) const {
  Words words;
  if (!text.empty()) words.words.push_back({text, first});
  for (const auto& step : steps_) step(words);
  return words;
}

}  // namespace qkv
