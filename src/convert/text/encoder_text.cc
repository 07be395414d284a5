#include "convert/text/encoder_text.h"

#include "convert/text/translator_text.h"
#include "convert/text/vocabulary_files.h"
#include "core/fail.h"
#include "io/runs/tokenizer_files.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

constexpr const char *kFairseq = "sentencepiece.bpe.model", *kAlbert = "spiece.model";

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

TextCodec read_fairseq(const std::string& path, const std::string& unknown) {
  const SentencePieceFile splitter = SentencePieceFile::read(path);
  std::vector<std::string> pieces = fairseq_pieces(splitter);
  pieces.push_back("<mask>");
  return TextCodec::of_pieces(Tokenizer::with_pieces(splitter, std::move(pieces), unknown, splitter.where));
}

// Lets texts spell the special tokens, if the pieces of a SentencePiece model are a list.
void spell_tokens(const ModelFiles& files, const ClassTokens& special, EmbeddingConfig& config, TextCodec& codec) {
  if (codec.unit() != TextUnit::pieces) return;
  const Tokenizer& tokenizer = codec.tokenizer();
  if (!tokenizer.own_pieces() || tokenizer.serialized().empty()) return;
  SpelledTokens spelled = spelled_tokens(files, special.all, special.mask, *tokenizer.own_pieces());
  config.spelled = std::move(spelled.all);
  config.strips_left = std::move(spelled.strips_left);
  config.strips_right = std::move(spelled.strips_right);
  codec = TextCodec::of_pieces(
      with_spelled(tokenizer, config.spelled, config.strips_left, config.strips_right, files.path()));
}

// A list of tokens, for text that is split at spaces.
std::vector<std::string> listed_pieces(const ModelFiles& files) {
  if (files.has("vocab.txt")) return pieces_from_lines(files.open_small("vocab.txt")->text(), files.path("vocab.txt"));
  if (files.has("vocab.json")) return parse_piece_ids(files.open_small("vocab.json")->text(), files.path("vocab.json"));
  if (const auto library = read_library_tokenizer(files)) {
    std::vector<std::string> pieces;
    for (int32_t id = 0; id < library->size(); id++) pieces.push_back(library->piece(id));
    return pieces;
  }
  fail("{}: found no list of tokens: expected vocab.txt, vocab.json or tokenizer.json", files.path());
}

TextCodec read_codec(const TextSource& source, const std::string& unknown, const char* tokenizer_class) {
  const ModelFiles& files = source.files;
  if (source.options.tokens)
    return TextCodec::of_pieces(Tokenizer::with_pieces({}, listed_pieces(files), unknown, files.path()));
  if (files.has(kFairseq) && !files.has("tokenizer.json")) return read_fairseq(files.path(kFairseq), unknown);
  return read_text_codec(files, tokenizer_class);
}

TextCodec read_albert_codec(const TextSource& source, const std::string& unknown) {
  const ModelFiles& files = source.files;
  if (source.options.tokens || !files.has(kAlbert) || files.has("tokenizer.json"))
    return read_codec(source, unknown, "AlbertTokenizer");
  const SentencePieceFile splitter = SentencePieceFile::read(files.path(kAlbert));
  return TextCodec::of_pieces(
      Tokenizer::with_pieces(splitter, Tokenizer::pieces_of(splitter), unknown, splitter.where));
}

EncoderText encoder_text(EmbeddingConfig config, TextCodec codec) {
  config.unit = codec.unit();
  return {std::move(config), std::move(codec)};
}

}  // namespace

ModelText read_encoder_text(const TextSource& source, const EncoderTokens& tokens, const char* tokenizer_class) {
  EmbeddingConfig config = read_tokens(source, tokens);
  TextCodec codec = read_codec(source, config.unknown, tokenizer_class);
  spell_tokens(source.files, fairseq_tokens(), config, codec);
  return encoder_text(std::move(config), std::move(codec));
}

ModelText read_albert_text(const TextSource& source) {
  EmbeddingConfig config = read_tokens(source, {"[CLS]", "[SEP]", "<unk>"});
  TextCodec codec = read_albert_codec(source, config.unknown);
  spell_tokens(source.files, {{"[CLS]", "[SEP]", "<pad>", "<unk>", "[MASK]"}, "[MASK]"}, config, codec);
  if (!source.options.tokens && codec.unit() == TextUnit::pieces) {
    const Settings s = read_tokenizer_config(source.files);
    config.plain_quotes = true;
    config.strip_accents = !s.flag("keep_accents", false);
    config.lowercase = s.flag("do_lower_case", true);
  }
  return encoder_text(std::move(config), std::move(codec));
}

ModelText read_bert_text(const TextSource& source) {
  return read_encoder_text(source, {"[CLS]", "[SEP]", "[UNK]"}, "GPT2Tokenizer");
}

}  // namespace qkv
