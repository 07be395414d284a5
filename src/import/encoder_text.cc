#include "import/encoder_text.h"

#include <algorithm>

#include "core/fail.h"
#include "import/sentence_transformers.h"
#include "import/vocabulary_files.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

constexpr const char* kFairseq = "sentencepiece.bpe.model";

EmbeddingConfig read_tokens(const TextSource& source, const EncoderTokens& tokens) {
  const Settings s = read_tokenizer_config(source.files);
  const auto token = [&](const char* name, const char* otherwise) {
    return s.find(name) ? token_of(s, name) : otherwise;
  };
  EmbeddingConfig config;
  config.start = source.options.source_start.value_or(token("cls_token", tokens.start));
  config.end = source.options.source_end.value_or(token("sep_token", tokens.end));
  config.unknown = source.options.unknown.value_or(token("unk_token", tokens.unknown));
  return config;
}

// The pieces of a SentencePiece model by the ids of fairseq, which XLM-R has: four tokens of its own, the pieces of the
// model without its first three, and the mask.
std::vector<std::string> fairseq_pieces(const Tokenizer& tokenizer, const std::string& where) {
  constexpr const char* kFirst[] = {"<unk>", "<s>", "</s>"};
  for (int32_t id = 0; id < 3; id++)
    if (tokenizer.size() <= id || tokenizer.piece(id) != kFirst[id])
      fail("{}: piece {} must be {}", where, id, kFirst[id]);
  std::vector<std::string> pieces = {"<s>", "<pad>", "</s>", "<unk>"};
  for (int32_t id = 3; id < tokenizer.size(); id++) pieces.push_back(tokenizer.piece(id));
  pieces.push_back("<mask>");
  return pieces;
}

TextCodec read_fairseq(const std::string& path, const std::string& unknown) {
  const SentencePieceFile splitter = SentencePieceFile::read(path);
  std::vector<std::string> pieces =
      fairseq_pieces(Tokenizer::from_serialized(splitter.bytes, splitter.where), splitter.where);
  return TextCodec::of_pieces(Tokenizer::with_pieces(splitter, std::move(pieces), unknown, splitter.where));
}

// A list of tokens, for text that is split at spaces.
std::vector<std::string> listed_pieces(const ModelFiles& files) {
  if (files.has("vocab.txt")) return pieces_from_lines(files.open_small("vocab.txt")->text(), files.path("vocab.txt"));
  if (files.has("vocab.json")) return parse_piece_ids(files.open_small("vocab.json")->text(), files.path("vocab.json"));
  fail("{}: found no list of tokens, neither vocab.txt nor vocab.json", files.path());
}

TextCodec read_codec(const TextSource& source, const std::string& unknown, const char* tokenizer_class) {
  const ModelFiles& files = source.files;
  if (source.options.tokens)
    return TextCodec::of_pieces(Tokenizer::with_pieces({}, listed_pieces(files), unknown, files.path()));
  if (files.has(kFairseq)) return read_fairseq(files.path(kFairseq), unknown);
  return read_text_codec(files, tokenizer_class);
}

}  // namespace

ModelText read_encoder_text(const TextSource& source, const EncoderTokens& tokens, const char* tokenizer_class) {
  EmbeddingConfig config = read_tokens(source, tokens);
  TextCodec codec = read_codec(source, config.unknown, tokenizer_class);
  config.unit = codec.unit();
  read_sentence_transformers(source.files, config);
  config.max_length = std::min(config.max_length, source.model.max_length);
  return EncoderText{std::move(config), std::move(codec)};
}

ModelText read_bert_text(const TextSource& source) {
  return read_encoder_text(source, {"[CLS]", "[SEP]", "[UNK]"}, "GPT2Tokenizer");
}

}  // namespace qkv
