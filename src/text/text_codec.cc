#include "text/text_codec.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// Calls f(character) for the code points of valid UTF-8.
template <class F>
void for_each_character(std::string_view text, F&& f) {
  for (size_t begin = 0; begin < text.size();) {
    const auto lead = static_cast<unsigned char>(text[begin]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    f(text.substr(begin, length));
    begin += length;
  }
}

void require_utf8(std::string_view text, const std::string& where) {
  if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
    fail("{}: byte {} is not valid UTF-8", where, bad + 1);
}

}  // namespace

TextCodec TextCodec::of_characters(std::span<const std::string_view> texts) {
  std::set<std::string_view> seen;  // bytes of UTF-8 are in the order of code points
  for (const std::string_view text : texts)
    for_each_character(text, [&](std::string_view character) { seen.insert(character); });
  return of_characters({seen.begin(), seen.end()}, "text");
}

TextCodec TextCodec::of_characters(std::vector<std::string> characters, const std::string& where) {
  TextCodec codec;
  codec.kind_ = std::make_shared<const Vocabulary>(std::move(characters), where);
  return codec;
}

TextCodec TextCodec::of_pieces(Tokenizer tokenizer) {
  TextCodec codec;
  codec.kind_ = std::move(tokenizer);
  return codec;
}

TextCodec TextCodec::of_tokenizer(HuggingFaceTokenizer tokenizer) {
  TextCodec codec;
  codec.kind_ = std::move(tokenizer);
  return codec;
}

void TextCodec::pad(int64_t wanted, const std::string& where) {
  const int32_t own = own_size();
  if (wanted < own || wanted > std::numeric_limits<int32_t>::max())
    fail("{}: {} tokens of the model, the tokenizer has {}", where, wanted, own);
  padding_ = static_cast<int32_t>(wanted) - own;
}

void TextCodec::fit(int64_t wanted, const std::string& where) {
  auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_);
  if (tokenizer && wanted >= 0 && wanted < tokenizer->size())
    *tokenizer = tokenizer->shortened(static_cast<int32_t>(wanted), where);
  pad(wanted, where);
}

std::vector<int32_t> TextCodec::encode_plain(std::string_view text, const std::string& where) const {
  if (const auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_)) return tokenizer->encode_plain(text);
  if (const auto* tokenizer = std::get_if<Tokenizer>(&kind_)) {
    require_utf8(text, where);
    return tokenizer->encode_plain(text);
  }
  return encode(text, where);
}

std::vector<int32_t> TextCodec::encode(std::string_view text, const std::string& where) const {
  std::vector<int32_t> ids;
  if (unit() != TextUnit::bytes) require_utf8(text, where);
  if (const auto* tokenizer = std::get_if<Tokenizer>(&kind_)) return tokenizer->encode_prompt(text);
  if (const auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_)) return tokenizer->encode(text);
  ids.reserve(text.size());
  const auto* characters = std::get_if<Characters>(&kind_);
  if (!characters) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  for_each_character(text, [&](std::string_view character) {
    const auto id = (*characters)->id(character);
    if (!id)
      fail("{}: the character {} is not in the vocabulary of {} characters", where, excerpt(character),
           (*characters)->size());
    ids.push_back(*id);
  });
  return ids;
}

std::string TextCodec::decode(std::span<const int32_t> ids, bool first) const {
  const char* what = unit() == TextUnit::pieces ? "tokenizer: id" : "text: token";
  for (const int32_t id : ids)
    if (id < 0 || id >= size()) fail("{} {}, expected 0 to {}", what, id, size() - 1);
  std::vector<int32_t> shown;
  if (padding_ > 0) {
    const int32_t own = own_size();
    std::ranges::copy_if(ids, std::back_inserter(shown), [&](int32_t id) { return id < own; });
    ids = shown;
  }
  if (const auto* tokenizer = std::get_if<Tokenizer>(&kind_)) return tokenizer->decode_part(ids, first);
  if (const auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_)) return tokenizer->decode(ids, first);
  std::string text;
  for (const int32_t id : ids) {
    if (id == end()) continue;
    if (const auto* characters = std::get_if<Characters>(&kind_))
      text += (*characters)->pieces()[to_size(id)];
    else
      text += static_cast<char>(id);
  }
  return text;
}

std::optional<int32_t> TextCodec::before() const {
  const auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_);
  return tokenizer ? tokenizer->spec().before : std::nullopt;
}

std::optional<int32_t> TextCodec::after() const {
  const auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_);
  return tokenizer ? tokenizer->spec().after : std::nullopt;
}

int32_t TextCodec::end() const {
  if (const auto* tokenizer = std::get_if<Tokenizer>(&kind_)) return tokenizer->end();
  if (std::holds_alternative<HuggingFaceTokenizer>(kind_)) return after().value_or(-1);
  const auto* characters = std::get_if<Characters>(&kind_);
  return characters ? (*characters)->size() : 256;
}

int32_t TextCodec::own_size() const {
  if (const auto* tokenizer = std::get_if<Tokenizer>(&kind_)) return tokenizer->size();
  if (const auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_)) return tokenizer->size();
  return end() + 1;
}

int32_t TextCodec::size() const { return own_size() + padding_; }

TextUnit TextCodec::unit() const {
  if (std::holds_alternative<Tokenizer>(kind_)) return TextUnit::pieces;
  if (const auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_))
    return tokenizer->has_byte_pieces() ? TextUnit::byte_pieces : TextUnit::word_pieces;
  return std::holds_alternative<Characters>(kind_) ? TextUnit::characters : TextUnit::bytes;
}

std::optional<int32_t> TextCodec::id(std::string_view piece) const {
  if (const auto* tokenizer = std::get_if<Tokenizer>(&kind_)) return tokenizer->id(piece);
  if (const auto* tokenizer = std::get_if<HuggingFaceTokenizer>(&kind_)) return tokenizer->id(piece);
  return {};
}

std::string TextCodec::piece(int32_t id) const {
  if (id < 0 || id >= size()) fail("text: token {}, expected 0 to {}", id, size() - 1);
  if (id >= own_size()) return "";
  if (const auto* tokenizer = std::get_if<Tokenizer>(&kind_)) return tokenizer->piece(id);
  return hugging_face_tokenizer().piece(id);
}

const std::vector<std::string>& TextCodec::characters() const { return std::get<Characters>(kind_)->pieces(); }
const Tokenizer& TextCodec::tokenizer() const { return std::get<Tokenizer>(kind_); }
const HuggingFaceTokenizer& TextCodec::hugging_face_tokenizer() const { return std::get<HuggingFaceTokenizer>(kind_); }

}  // namespace qkv
