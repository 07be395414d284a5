#include "decode/generation/chat_encoder.h"

#include <algorithm>

#include "core/to_size.h"
#include "text/pieces/sentencepiece_check.h"
#include "text/pieces/sentencepiece_writer.h"

namespace qkv {
namespace {

constexpr const char* kWhere = "messages";

bool is_white_space(std::string_view text) {
  std::string rest;
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with("\u2581")) {
      i += 3;
      continue;
    }
    rest += text[i++];
  }
  return rest.find_first_not_of(" \t\n\r") == std::string::npos;
}

// The control tokens of a SentencePiece model, and those of its user-defined pieces that the templates spell.
std::vector<AddedToken> control_pieces(const Tokenizer& tokenizer, const ChatTokens& tokens,
                                       const std::string& sources) {
  const auto has = [](const std::vector<std::string>& list, const std::string& text) {
    return std::ranges::find(list, text) != list.end();
  };
  const std::vector<int32_t> types = piece_types(tokenizer.serialized());
  std::vector<AddedToken> found;
  for (int32_t id = 0; id < std::min(std::ssize(types), std::ptrdiff_t{tokenizer.size()}); id++) {
    const int32_t type = types[to_size(id)];
    if (type != kControlPiece && type != kUserDefinedPiece && type != kUnknownPiece) continue;
    const std::string& piece = tokenizer.piece(id);
    if (type == kUserDefinedPiece && (is_white_space(piece) || sources.find(piece) == std::string::npos)) continue;
    found.push_back({.id = id,
                     .text = piece,
                     .strips_left = has(tokens.strip_left, piece),
                     .strips_right = has(tokens.strip_right, piece),
                     .special = type != kUserDefinedPiece});
  }
  return found;
}

}  // namespace

ChatEncoder::ChatEncoder(const TextCodec& codec, const ChatTokens& tokens, const std::string& sources)
    : codec_(codec), space_after_tokens_(tokens.space_after_tokens), is_control_(to_size(codec.size())) {
  std::vector<AddedToken> controls;
  if (codec.unit() == TextUnit::pieces) {
    controls = control_pieces(codec.tokenizer(), tokens, sources);
    pieces_ = AddedTokens(controls, false, {});
  } else if (has_tokenizer_json(codec.unit())) {
    for (const AddedToken& token : codec.hugging_face_tokenizer().spec().added)
      if (token.special || (!is_white_space(token.text) && sources.find(token.text) != std::string::npos))
        controls.push_back(token);
  }
  for (const AddedToken& token : controls) is_control_[to_size(token.id)] = true;
}

bool ChatEncoder::accepts(const MarkedText& text, const AddedToken& token, size_t begin, size_t end) const {
  return !is_control_[to_size(token.id)] || !text.has_data_in(begin, end);
}

std::vector<int32_t> ChatEncoder::encode(const MarkedText& text) const {
  if (codec_.unit() == TextUnit::pieces) return encode_pieces(text);
  if (!has_tokenizer_json(codec_.unit())) return codec_.encode(text.bytes, kWhere);
  return codec_.hugging_face_tokenizer().encode(
      text.bytes, [&](const AddedToken& token, size_t begin, size_t end) { return accepts(text, token, begin, end); });
}

std::vector<int32_t> ChatEncoder::encode_pieces(const MarkedText& text) const {
  std::vector<size_t> cuts;  // within user-defined pieces that data spells: SentencePiece would find them
  const auto parts = pieces_.find(text.bytes, [&](const AddedToken& token, size_t begin, size_t end) {
    const bool accepted = accepts(text, token, begin, end);
    if (!accepted && !token.special) cuts.push_back(begin + 1);
    return accepted;
  });
  std::vector<int32_t> ids;
  for (const auto& part : parts) {
    if (const auto* id = std::get_if<int32_t>(&part)) {
      ids.push_back(*id);
      continue;
    }
    const auto piece = std::get<std::string_view>(part);
    const auto offset = static_cast<size_t>(piece.data() - text.bytes.data());
    size_t begin = 0;
    for (const size_t cut : cuts)
      if (cut > offset + begin && cut < offset + piece.size()) {
        encode_part(piece.substr(begin, cut - offset - begin), offset + begin == 0, ids);
        begin = cut - offset;
      }
    encode_part(piece.substr(begin), offset + begin == 0, ids);
  }
  return ids;
}

// A tokenizer that puts a space before a text does so behind each control token, or only at the beginning. It has no
// way to leave the space out, so the part is encoded behind a line break, whose tokens are removed.
void ChatEncoder::encode_part(std::string_view part, bool first, std::vector<int32_t>& ids) const {
  constexpr std::string_view kBreak = "\n";
  const auto encode = [&](std::string_view text) { return codec_.encode_plain(text, kWhere); };
  std::vector<int32_t> found;
  if (!first && !space_after_tokens_) {
    const std::vector<int32_t> before = encode(kBreak);
    found = encode(std::string(kBreak).append(part));
    if (found.size() >= before.size() && std::equal(before.begin(), before.end(), found.begin()))
      found.erase(found.begin(), found.begin() + std::ssize(before));
    else
      found = encode(part);
  } else {
    found = encode(part);
  }
  ids.insert(ids.end(), found.begin(), found.end());
}

}  // namespace qkv
