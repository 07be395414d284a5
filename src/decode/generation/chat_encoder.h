// The tokens of a conversation. Control tokens are only found in what the template wrote.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chat/marked_text.h"
#include "io/runs/chat_files.h"
#include "text/text_codec.h"

namespace qkv {

class ChatEncoder {
 public:
  // sources: the chat templates. An added token is a control token if it is special, or if a template spells it and it
  // is not white space. The codec must outlive the object.
  ChatEncoder(const TextCodec& codec, const ChatTokens& tokens, const std::string& sources);

  // Returns the tokens of a text, as transformers gives them for an ordinary conversation. Throws Error for characters
  // that are not in the vocabulary.
  std::vector<int32_t> encode(const MarkedText& text) const;

 private:
  bool accepts(const MarkedText& text, const AddedToken& token, size_t begin, size_t end) const;
  std::vector<int32_t> encode_pieces(const MarkedText& text) const;
  void encode_part(std::string_view part, bool first, std::vector<int32_t>& ids) const;

  const TextCodec& codec_;
  const bool space_after_tokens_;
  std::vector<bool> is_control_;  // by id
  AddedTokens pieces_;            // the control tokens of a SentencePiece model
};

}  // namespace qkv
