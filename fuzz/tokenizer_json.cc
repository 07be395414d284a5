// tokenizer.json: what is read is written and read again as the same, and cuts text that its own pieces make up.
#include "text/tokenizer_json/tokenizer_json.h"

#include <algorithm>

#include "fuzz/reader.h"
#include "text/pieces/byte_pairs.h"

void qkv::fuzz::fuzz_tokenizer_json(std::string_view bytes) {
  const TokenizerSpec spec = parse_tokenizer_json(bytes, "tokenizer.json");
  const HuggingFaceTokenizer tokenizer(spec, "tokenizer.json");
  require(parse_tokenizer_json(to_json(spec), "again") == spec, "a tokenizer survives writing");
  std::string text = "It's  12,345 Äa\u0301\r\n\n ☃ 你好 ﬁ\u00A0x";
  for (int32_t id = 0; id < std::min(tokenizer.size(), 1000); id++) text += tokenizer.piece(id);
  const std::vector<int32_t> ids = tokenizer.encode(text);
  tokenizer.decode(ids, true);
  const auto* model = std::get_if<BytePieces>(&spec.model);
  if (model && !model->compose && !model->space_first && spec.added.empty() && !byte_without_piece(spec.pieces))
    require(tokenizer.decode(ids, true) == text, "text comes back byte for byte");
}
