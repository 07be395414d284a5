// A SentencePiece model: what passes the check is loaded by the library, and cuts text that its own pieces make up.
#include <algorithm>

#include "fuzz/reader.h"
#include "text/tokenizer.h"

namespace {

// Text in the pieces of a list, and in those of a model that is used to cut it only.
void use_as_splitter(const std::string& model, const std::string& text) {
  const qkv::SentencePieceFile file{model, "model"};
  std::vector<std::string> pieces = qkv::Tokenizer::pieces_of(file);
  const std::string unknown = pieces.front();
  const auto tokenizer = qkv::Tokenizer::with_pieces(file, std::move(pieces), unknown, "list");
  tokenizer.decode(tokenizer.encode(">>" + unknown + "<< " + text));
  const auto words = qkv::Tokenizer::with_pieces({}, *tokenizer.own_pieces(), unknown, "list");
  words.decode(words.encode(text));
}

}  // namespace

void qkv::fuzz::fuzz_sentencepiece(std::string_view bytes) {
  const std::string model(bytes);
  const Tokenizer tokenizer = Tokenizer::from_serialized(model, "model");
  std::string text = "ba ter lé ☃ ﬁ\u00A0x";
  for (int32_t id = 0; id < std::min(tokenizer.size(), 100); id++) text += tokenizer.piece(id);
  const std::vector<int32_t> ids = tokenizer.encode(text);
  tokenizer.decode(ids);
  tokenizer.without_text({0}).decode(ids);
  for (const bool first : {true, false}) tokenizer.decode_part(ids, first);
  require(tokenizer.pieces(ids).size() == ids.size(), "every id has a piece");
  attempt([&] { use_as_splitter(model, text); });
}
