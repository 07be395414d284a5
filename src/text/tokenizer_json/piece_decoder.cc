#include "text/tokenizer_json/piece_decoder.h"

#include <unicode/utf8.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "text/pieces/byte_pairs.h"
#include "text/tokenizer_json/json_object.h"
#include "text/tokenizer_json/text_pattern.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;
using PieceStep = std::function<std::string(std::string_view, bool)>;

// The byte of "<0x0A>".
std::string byte_of_piece(std::string_view piece, bool) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::string(piece);
  unsigned char byte = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  if (error != std::errc() || end != piece.data() + 5) return std::string(piece);
  return std::string(1, static_cast<char>(byte));
}

PieceStep read_metaspace_decoder(const json& value, const std::string& where) {
  const JsonObject object(value, where,
                          {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
  const std::string mark = object.text("replacement");
  if (count_characters(mark) != 1) object.wrong("replacement", "a character");
  const bool spaced =
      object.text("prepend_scheme", object.flag("add_prefix_space", true) ? "always" : "never") != "never";
  return [pattern = TextPattern(mark), spaced](std::string_view piece, bool first) {
    return pattern.replace(piece, first && spaced ? "" : " ");
  };
}

// Removes the spaces around English punctuation that the library removes.
std::string clean_up(std::string text) {
  for (const auto& [from, to] : {std::pair{" .", "."},
                                 {" ?", "?"},
                                 {" !", "!"},
                                 {" ,", ","},
                                 {" ' ", "'"},
                                 {" n't", "n't"},
                                 {" 'm", "'m"},
                                 {" do not", " don't"},
                                 {" 's", "'s"},
                                 {" 've", "'ve"},
                                 {" 're", "'re"}})
    text = TextPattern(std::string(from)).replace(text, to);
  return text;
}

PieceStep read_word_piece_decoder(const json& value, const std::string& where) {
  const JsonObject object(value, where, {"type", "prefix", "cleanup"});
  return [prefix = object.text("prefix", "##"), cleans = object.flag("cleanup", true)](std::string_view piece,
                                                                                       bool first) {
    std::string text(piece);
    if (!first) text = !prefix.empty() && piece.starts_with(prefix) ? text.substr(prefix.size()) : " " + text;
    return cleans ? clean_up(std::move(text)) : text;
  };
}

// Takes up to `start` of a character from the beginning of a text.
PieceStep read_strip(const json& value, const std::string& where, bool fused) {
  const JsonObject object(value, where, {"type", "content", "start", "stop"});
  const std::string content = object.text("content");
  if (count_characters(content) != 1) object.wrong("content", "a character");
  const int64_t start = object.integer("start", 0), stop = object.integer("stop", 0);
  if (fused && stop > 0) object.wrong("stop", "0");
  return [content, start, stop, fused](std::string_view piece, bool first) {
    for (int64_t i = 0; i < start && piece.starts_with(content) && (first || !fused); i++)
      piece.remove_prefix(content.size());
    for (int64_t i = 0; i < stop && piece.ends_with(content); i++) piece.remove_suffix(content.size());
    return std::string(piece);
  };
}

PieceStep read_decoder_step(const json& value, const std::string& where, bool& fused) {
  const std::string type = type_of(&value);
  if (type == "Strip") return read_strip(value, where, fused);
  if (type == "Metaspace" && !fused) return read_metaspace_decoder(value, where);
  if (type == "WordPiece" && !fused) return read_word_piece_decoder(value, where);
  if (type == "Replace") {
    const JsonObject object(value, where, {"type", "pattern", "content"});
    if (!object.find("pattern")) object.wrong("pattern", "an object");
    const json& pattern = *object.find("pattern");
    const bool character = pattern.is_object() && pattern.contains("String") && pattern.at("String").is_string() &&
                           count_characters(pattern.at("String").get_ref<const std::string&>()) == 1;
    if (fused && !character) object.wrong("pattern", "a character, behind Fuse");
    return [found = TextPattern::read(pattern, object.at("pattern")), by = object.text("content")](
               std::string_view piece, bool) { return found.replace(piece, by); };
  }
  if (type == "ByteFallback" && !fused) {
    const JsonObject object(value, where, {"type"});
    return byte_of_piece;
  }
  if (type == "ByteLevel" && !fused) {
    const JsonObject object(value, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    fused = true;
    return [](std::string_view piece, bool) { return bytes_of_spelling(piece); };
  }
  if (type == "Fuse") {
    const JsonObject object(value, where, {"type"});
    fused = true;
    return [](std::string_view piece, bool) { return std::string(piece); };
  }
  fail("{}: type is {}, expected Metaspace, ByteLevel, WordPiece, Replace, Strip, ByteFallback, Fuse or Sequence{}",
       where, excerpt(type), fused ? ", and behind Fuse only Replace, Strip and Fuse" : "");
}

}  // namespace

PieceDecoder::PieceDecoder(const json* value, const std::string& where) {
  bool fused = false;
  for (const auto& [step, place] : steps_of(value, where, "decoders"))
    steps_.push_back(read_decoder_step(*step, place, fused));
  if (!value)
    steps_.push_back(
        [](std::string_view piece, bool first) { return first ? std::string(piece) : " " + std::string(piece); });
}

std::string PieceDecoder::decode(std::string_view piece, bool first) const {
  std::string text(piece);
  for (const auto& step : steps_) text = step(text, first);
  return text;
}

}  // namespace qkv
