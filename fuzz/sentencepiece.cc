// A SentencePiece model: what passes the check is loaded by the library, and cuts text that its own pieces make up.
#include <algorithm>

#include "fuzz/reader.h"
#include "text/tokenizer.h"

void qkv::fuzz::fuzz_sentencepiece(std::string_view bytes) {
  const Tokenizer tokenizer = Tokenizer::from_serialized(std::string(bytes), "model");
  std::string text = "ba ter lé ☃ ﬁ\u00A0x";
  for (int32_t id = 0; id < std::min(tokenizer.size(), 100); id++) text += tokenizer.piece(id);
  const std::vector<int32_t> ids = tokenizer.encode(text);
  tokenizer.decode(ids);
  require(tokenizer.pieces(ids).size() == ids.size(), "every id has a piece");
}
