// The text of a language model in the Hugging Face layout: its tokenizer, and the tokens around a text.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/imported_model.h"
#include "convert/text/chat_import.h"
#include "convert/text/vocabulary_files.h"
#include "core/fail.h"
#include "core/json.h"
#include "text/pieces/sentencepiece_writer.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr size_t kMaxTokenizer = size_t{1} << 27;  // bytes; a vocabulary of 256,000 pieces has about 2^25

// In transformers some fields of tokenizer_config.json override tokenizer.json.
void check_agreement(const TokenizerSpec& spec, const Settings& settings, Edges edges) {
  const auto check = [&](const char* name, bool found) {
    if (settings.flag(name, found) != found)
      fail("{}: {} must be {}, as in tokenizer.json (is {})", settings.where(), name, found, !found);
  };
  if (const auto* bytes = std::get_if<BytePieces>(&spec.model)) check("add_prefix_space", bytes->space_first);
  if (const auto* words = std::get_if<WordPieceModel>(&spec.model)) {
    check("do_lower_case", words->cleaning.lowercase);
    check("strip_accents", words->cleaning.strip_accents);
    check("tokenize_chinese_chars", words->cleaning.space_chinese);
  }
  if (edges == Edges::read) {
    check("add_bos_token", spec.before.has_value());
    check("add_eos_token", spec.after.has_value());
  }
  for (const AddedToken& token : added_tokens_of(settings))
    if (std::ranges::find(spec.added, token) == spec.added.end())
      fail("{}: the added token {} {} differs from that of tokenizer.json", settings.where(), token.id,
           excerpt(token.text));
}

TokenizerSpec read_tokenizer_json(const ModelFiles& files, Edges edges) {
  const auto bytes = files.open("tokenizer.json");
  const std::string path = files.path("tokenizer.json");
  if (bytes->text().size() > kMaxTokenizer)
    fail("{}: must have at most 128 MiB (has {} bytes)", path, bytes->text().size());
  TokenizerSpec spec = parse_tokenizer_json(bytes->text(), path, edges);
  check_agreement(spec, read_tokenizer_config(files), edges);
  return spec;
}

TextCodec of_spec(TokenizerSpec spec, const std::string& where) {
  return TextCodec::of_tokenizer(HuggingFaceTokenizer(std::move(spec), where));
}

// Adds the tokens that tokenizer_config.json puts behind the pieces of a SentencePiece model, as Phi-3 has them. They
// are control tokens, as are those that fill the gaps between their ids.
TextCodec extended(const TextCodec& codec, const TextSource& source) {
  constexpr int64_t kMaxBehind = 4096;
  const int64_t size = codec.size(), wanted = source.model.target_vocab;
  if (wanted <= size || wanted > size + kMaxBehind) return codec;
  const std::vector<AddedToken> added = added_tokens_of(read_tokenizer_config(source.files));
  std::string bytes = codec.tokenizer().serialized();
  const int64_t end = added.empty() ? size : std::clamp<int64_t>(int64_t{added.back().id} + 1, size, wanted);
  for (int64_t id = size; id < end; id++) {
    const auto token = std::ranges::find(added, static_cast<int32_t>(id), &AddedToken::id);
    const bool is_new = token != added.end() && !codec.id(token->text);
    const std::string text = is_new ? token->text : fmt::format("<unused_{}>", id);
    bytes += serialize(SentencePieceModel::Piece{text, 0, kControlPiece});
  }
  return TextCodec::of_pieces(Tokenizer::from_serialized(std::move(bytes), source.files.path("tokenizer.model")));
}

// Returns the pieces whose ids a field holds, a number or a list of numbers.
std::vector<std::string> pieces_of(const Settings& settings, const std::string& name, const TextCodec& codec) {
  std::vector<std::string> pieces;
  const json* found = settings.find(name);
  if (!found) return pieces;
  for (const json& id : found->is_array() ? *found : json::array({*found})) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(codec.size()))
      fail("{}: {} must be ids below {} (is {})", settings.where(), name, codec.size(), found->dump());
    pieces.push_back(codec.piece(id.get<int32_t>()));
  }
  return pieces;
}

}  // namespace

TextCodec read_text_codec(const ModelFiles& files, const std::string& tokenizer_class) {
  if (files.has("tokenizer.json"))
    return of_spec(read_tokenizer_json(files, Edges::read), files.path("tokenizer.json"));
  if (files.has("tokenizer.model")) return TextCodec::of_pieces(Tokenizer::load(files.path("tokenizer.model")));
  if (files.has("vocab.json") && files.has("merges.txt"))
    return of_spec(read_vocabulary_and_merges(files, tokenizer_class), files.path("vocab.json"));
  if (files.has("vocab.txt")) return of_spec(read_vocabulary_lines(files), files.path("vocab.txt"));
  fail("{}: expected tokenizer.json, tokenizer.model, vocab.json with merges.txt, or vocab.txt", files.path());
}

std::optional<HuggingFaceTokenizer> read_library_tokenizer(const ModelFiles& files) {
  if (!files.has("tokenizer.json")) return {};
  return HuggingFaceTokenizer(read_tokenizer_json(files, Edges::ignored), files.path("tokenizer.json"));
}

LanguageText read_language_text(const TextSource& source, const std::string& tokenizer_class) {
  const ModelFiles& files = source.files;
  const Settings& config = source.config;
  LanguageText text{{}, read_text_codec(files, tokenizer_class), read_chat(files)};
  if (text.codec.unit() == TextUnit::pieces) text.codec = extended(text.codec, source);
  const TextCodec& codec = text.codec;
  text.config.unit = codec.unit();
  if (source.embeds) return text;
  std::vector<std::string> starts;
  std::vector<std::string>& ends = text.config.ends;
  const auto add_end = [&](const std::string& piece) {
    if (!piece.empty() && std::ranges::find(ends, piece) == ends.end()) ends.push_back(piece);
  };
  const auto read = [&](const Settings& settings) {
    for (const std::string& piece : pieces_of(settings, "eos_token_id", codec)) add_end(piece);
    if (starts.empty()) starts = pieces_of(settings, "bos_token_id", codec);
  };
  if (files.has("generation_config.json"))
    read(Settings(files.open_small("generation_config.json")->text(), files.path("generation_config.json")));
  read(config);
  const Settings tokenizer_config = read_tokenizer_config(files);
  if (const std::string end = token_of(tokenizer_config, "eos_token"); codec.id(end)) add_end(end);
  add_end(end_of_answer(text.chat, codec));
  if (codec.unit() == TextUnit::pieces) {
    text.config.start = codec.piece(codec.tokenizer().start());
    text.chat.tokens.starts_prompts = tokenizer_config.flag("add_bos_token", true);
    return text;
  }
  if (text.config.ends.empty() && codec.after()) text.config.ends = {codec.piece(*codec.after())};
  if (text.config.ends.empty()) fail("{}: eos_token_id is missing", config.where());
  text.config.start = codec.before()   ? codec.piece(*codec.before())
                      : starts.empty() ? text.config.ends.front()
                                       : starts.front();
  return text;
}

}  // namespace qkv
