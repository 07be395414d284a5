#include "text/text_codec.h"

#include <algorithm>
#include <set>

#include "core/fail.h"
#include "core/json.h"
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

}  // namespace

TextCodec TextCodec::of_characters(std::span<const std::string_view> texts) {
  std::set<std::string_view> seen;  // bytes of UTF-8 are in the order of code points
  for (const std::string_view text : texts)
    for_each_character(text, [&](std::string_view character) { seen.insert(character); });
  return of_characters({seen.begin(), seen.end()}, "text");
}

TextCodec TextCodec::of_characters(std::vector<std::string> characters, const std::string& where) {
  TextCodec codec;
  codec.characters_ = std::make_shared<const Vocabulary>(std::move(characters), where);
  return codec;
}

TextCodec TextCodec::of_pieces(Tokenizer tokenizer) {
  TextCodec codec;
  codec.tokenizer_ = std::move(tokenizer);
  return codec;
}

std::vector<int32_t> TextCodec::encode(std::string_view text, const std::string& where) const {
  std::vector<int32_t> ids;
  if (unit() != TextUnit::bytes)
    if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
      fail("{}: byte {} is not valid UTF-8", where, bad + 1);
  if (tokenizer_) return tokenizer_->encode(text);
  ids.reserve(text.size());
  if (!characters_) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  for_each_character(text, [&](std::string_view character) {
    const auto id = characters_->id(character);
    if (!id) fail("{}: the character {} is none of the model's {}", where, excerpt(character), characters_->size());
    ids.push_back(*id);
  });
  return ids;
}

std::string TextCodec::decode(std::span<const int32_t> ids, bool first) const {
  if (tokenizer_) return tokenizer_->decode_part(ids, first);
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size()) fail("text: token {}, wanted 0 to {}", id, size() - 1);
    if (id == end()) continue;
    if (characters_)
      text += characters_->pieces()[static_cast<size_t>(id)];
    else
      text += static_cast<char>(id);
  }
  return text;
}

}  // namespace qkv
