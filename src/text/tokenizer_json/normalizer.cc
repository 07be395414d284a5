#include "text/tokenizer_json/normalizer.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/pieces/byte_pairs.h"
#include "text/pieces/charsmap.h"
#include "text/tokenizer_json/json_object.h"
#include "text/tokenizer_json/text_pattern.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;
using Step = std::function<std::string(std::string_view)>;

// The text without the characters for which `drops` holds, and with spaces for those for which `is_space` does.
template <class Drops, class IsSpace>
std::string filter(std::string_view text, Drops drops, IsSpace is_space) {
  std::string result;
  const auto length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT_OR_FFFD(text.data(), i, length, c);
    if (drops(c)) continue;
    if (is_space(c))
      result += ' ';
    else
      result.append(text, to_size(begin), to_size(i - begin));
  }
  return result;
}

// Combining marks of Unicode 9, which the library tokenizers goes by.
bool is_old_mark(UChar32 c) {
  if (!(U_GET_GC_MASK(c) & U_GC_M_MASK)) return false;
  UVersionInfo age;
  u_charAge(c, age);
  return age[0] <= 9;
}

// Removes and replaces the characters that SentencePiece does before its rules of the kind "nmt".
std::string normalize_nmt(std::string_view text) {
  const auto drops = [](UChar32 c) {
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  };
  const auto is_space = [](UChar32 c) {
    return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
           c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  };
  return filter(text, drops, is_space);
}

std::string lower_characters(std::string_view text) {
  return clean({.clean_text = false, .space_chinese = false, .strip_accents = false, .lowercase = true}, text);
}

std::string drop_marks(std::string_view text) {
  return filter(text, is_old_mark, [](UChar32) { return false; });
}

std::string strip_spaces(std::string_view text, bool left, bool right) {
  const auto length = static_cast<int64_t>(text.size());
  int64_t begin = 0, end = length;
  for (int64_t i = 0; left && i < length; begin = i) {
    UChar32 c;
    U8_NEXT_OR_FFFD(text.data(), i, length, c);
    if (!u_isUWhiteSpace(c)) break;
  }
  while (right && end > begin) {
    int64_t i = end;
    do i--;
    while (i > begin && (text[to_size(i)] & 0xC0) == 0x80);
    int64_t next = i;
    UChar32 c;
    U8_NEXT_OR_FFFD(text.data(), next, length, c);
    if (!u_isUWhiteSpace(c)) break;
    end = i;
  }
  return std::string(text.substr(to_size(begin), to_size(end - begin)));
}

Step read_replacement(const json& value, const std::string& where) {
  const JsonObject object(value, where, {"type", "pattern", "content"});
  if (!object.find("pattern")) object.wrong("pattern", "an object");
  const TextPattern pattern = TextPattern::read(*object.find("pattern"), object.at("pattern"));
  return [pattern, by = object.text("content")](std::string_view text) { return pattern.replace(text, by); };
}

Step read_step(const json& value, const std::string& where) {
  const std::string type = type_of(&value);
  const auto plain = [&](Step step) {
    const JsonObject object(value, where, {"type"});
    return step;
  };
  if (type == "NFC") return plain(compose);
  if (type == "NFD") return plain(decompose);
  if (type == "NFKC") return plain(compose_compatible);
  if (type == "NFKD") return plain(decompose_compatible);
  if (type == "Nmt") return plain(normalize_nmt);
  if (type == "Lowercase") return plain(lower_characters);
  if (type == "StripAccents") return plain(drop_marks);
  if (type == "ByteLevel") return plain(spell_bytes);
  if (type == "BertNormalizer")
    return [how = read_bert_cleaning(value, where)](std::string_view text) { return clean(how, text); };
  if (type == "Replace") return read_replacement(value, where);
  if (type == "Prepend") {
    const JsonObject object(value, where, {"type", "prepend"});
    return [text = object.text("prepend")](std::string_view old) { return old.empty() ? "" : text + std::string(old); };
  }
  if (type == "Strip") {
    const JsonObject object(value, where, {"type", "strip_left", "strip_right"});
    return [left = object.flag("strip_left", true), right = object.flag("strip_right", true)](std::string_view text) {
      return strip_spaces(text, left, right);
    };
  }
  if (type == "Precompiled") {
    const JsonObject object(value, where, {"type", "precompiled_charsmap"});
    const std::string place = object.at("precompiled_charsmap");
    if (!object.find("precompiled_charsmap")) return [](std::string_view text) { return std::string(text); };
    const auto table = std::make_shared<const Charsmap>(from_base64(object.text("precompiled_charsmap"), place), place);
    return [table](std::string_view text) { return table->apply(text); };
  }
  fail(
      "{}: type is {}, expected NFC, NFD, NFKC, NFKD, Nmt, Lowercase, StripAccents, BertNormalizer, Precompiled, "
      "Replace, Prepend, Strip, ByteLevel or Sequence",
      where, excerpt(type));
}

}  // namespace

BertCleaning read_bert_cleaning(const json& value, const std::string& where) {
  const JsonObject object(value, where, {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  BertCleaning how;
  how.clean_text = object.flag("clean_text", true);
  how.space_chinese = object.flag("handle_chinese_chars", true);
  how.lowercase = object.flag("lowercase", true);
  how.strip_accents = object.flag("strip_accents", how.lowercase);
  return how;
}

Normalizer::Normalizer(const json* value, const std::string& where) {
  for (const auto& [step, place] : steps_of(value, where, "normalizers")) steps_.push_back(read_step(*step, place));
}

std::string Normalizer::apply(std::string_view text) const {
  std::string result(text);
  for (const auto& step : steps_) {
    result = step(result);
    check_growth(text.size(), result.size());
  }
  return result;
}

}  // namespace qkv
