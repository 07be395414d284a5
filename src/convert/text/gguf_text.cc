#include "convert/text/gguf_text.h"

#include <algorithm>

#include "convert/text/chat_import.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/pieces/sentencepiece_writer.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

constexpr uint64_t kMaxGgufMerges = 1 << 20;

std::string key_of(const char* name) { return fmt::format("tokenizer.ggml.{}", name); }

// A way to split a text into words, by the name that llama.cpp has for it.
struct WordSplitter {
  const char* name;
  std::vector<WordPattern> splits = {};
  bool gpt2_words = false;
  bool compose = false;      // normal form C
  bool whole_words = false;  // a word that is a piece is not merged
  bool starts = false;       // whether the start token is added unless the file says otherwise
};

const std::vector<WordSplitter>& word_splitters() {
  static const std::vector<WordSplitter> all = {
      {.name = "gpt-2", .gpt2_words = true},
      {.name = "phi-2", .gpt2_words = true},
      {.name = "olmo", .gpt2_words = true, .compose = true},
      {.name = "mpt", .gpt2_words = true, .compose = true},
      {.name = "starcoder", .splits = {WordPattern::digit}, .gpt2_words = true},
      {.name = "refact", .splits = {WordPattern::digit}, .gpt2_words = true},
      {.name = "smollm", .splits = {WordPattern::digit}, .gpt2_words = true},
      {.name = "dbrx", .splits = {WordPattern::llama3}},
      {.name = "smaug-bpe", .splits = {WordPattern::llama3}},
      {.name = "llama-bpe", .splits = {WordPattern::llama3}, .whole_words = true, .starts = true},
      {.name = "qwen2", .splits = {WordPattern::qwen2}, .compose = true},
      {.name = "deepseek-r1-qwen", .splits = {WordPattern::qwen2}, .compose = true},
  };
  return all;
}

const WordSplitter& word_splitter(const GgufMetadata& metadata) {
  const std::string name = metadata.text(key_of("pre"));
  std::vector<const char*> names;
  for (const WordSplitter& splitter : word_splitters()) {
    if (splitter.name == name) return splitter;
    names.push_back(splitter.name);
  }
  fail("{}: {} must be one of {} (is {})", metadata.where(), key_of("pre"), fmt::join(names, ", "), excerpt(name));
}

// The tokens, their types and the special ones among them.
class GgufTokens {
 public:
  explicit GgufTokens(const GgufMetadata& metadata)
      : metadata_(metadata), pieces_(metadata.texts(key_of("tokens"), kMaxPieces)) {
    if (metadata.has(key_of("token_type")))
      types_ = metadata.integers(key_of("token_type"), kMaxPieces);
    else
      types_.assign(pieces_.size(), kNormalPiece);
    if (types_.size() != pieces_.size())
      fail("{}: {} must have {} elements, one per token (has {})", metadata.where(), key_of("token_type"),
           pieces_.size(), types_.size());
    for (const int64_t type : types_)
      if (type < kNormalPiece || type > kBytePiece)
        fail("{}: {} must be between 1 and 6 (is {})", metadata.where(), key_of("token_type"), type);
  }

  const std::vector<std::string>& pieces() const { return pieces_; }
  int64_t type(size_t id) const { return types_[id]; }

  // The id that the metadata names; nothing if it names none.
  std::optional<int32_t> special(const char* name) const {
    const std::string key = key_of(name);
    if (!metadata_.has(key)) return {};
    const int64_t id = metadata_.integer(key);
    if (id < 0 || id >= std::ssize(pieces_))
      fail("{}: {} must be below {}, the number of tokens (is {})", metadata_.where(), key, pieces_.size(), id);
    return static_cast<int32_t>(id);
  }

  // The unknown token: the piece of this type, or, as in files of Gemma 3, the one that the metadata names.
  std::optional<int32_t> unknown() const {
    const auto found = std::ranges::find(types_, int64_t{kUnknownPiece});
    if (found == types_.end()) return special("unknown_token_id");
    return static_cast<int32_t>(found - types_.begin());
  }

  // The tokens that end a text: the end of a sequence, of a turn, of a message.
  std::vector<int32_t> ends() const {
    std::vector<int32_t> ids;
    for (const char* name : {"eos_token_id", "eot_token_id", "eom_token_id"})
      if (const auto id = special(name); id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
    if (ids.empty()) fail("{}: {} is missing", metadata_.where(), key_of("eos_token_id"));
    return ids;
  }

 private:
  const GgufMetadata& metadata_;
  std::vector<std::string> pieces_;
  std::vector<int64_t> types_;
};

// Spells user-defined pieces, which GGUF files write with spaces, as SentencePiece does, with "▁".
class VisibleSpaces {
 public:
  explicit VisibleSpaces(const std::vector<std::string>& pieces) : pieces_(pieces.begin(), pieces.end()) {
    std::ranges::sort(pieces_);
  }

  // Returns the piece itself if another one has that spelling.
  std::string spell(const std::string& piece) const {
    std::string visible;
    for (const char c : piece)
      if (c == ' ')
        visible += "\u2581";
      else
        visible += c;
    return std::ranges::binary_search(pieces_, visible) ? piece : visible;
  }

 private:
  std::vector<std::string_view> pieces_;  // sorted
};

TextCodec sentencepiece_codec(const GgufMetadata& metadata, const GgufTokens& tokens, const std::string& where) {
  if (metadata.flag(key_of("add_eos_token"), false))
    fail("{}: {} must be false for a tokenizer of SentencePiece (is true)", metadata.where(), key_of("add_eos_token"));
  const std::vector<float> scores = metadata.numbers(key_of("scores"), kMaxPieces);
  if (scores.size() != tokens.pieces().size())
    fail("{}: {} must have {} elements, one per token (has {})", metadata.where(), key_of("scores"),
         tokens.pieces().size(), scores.size());
  SentencePieceModel model;
  model.space_first = metadata.flag(key_of("add_space_prefix"), true);
  const auto start = tokens.special("bos_token_id"), end = tokens.special("eos_token_id");
  if (!end) fail("{}: {} is missing", metadata.where(), key_of("eos_token_id"));
  const std::optional<int32_t> unknown = tokens.unknown();
  const VisibleSpaces spaces(tokens.pieces());
  for (size_t id = 0; id < scores.size(); id++) {
    const auto is = [&](const std::optional<int32_t>& special) { return special == static_cast<int32_t>(id); };
    const auto type = static_cast<int32_t>(is(start) || is(end) ? kControlPiece
                                           : is(unknown)        ? kUnknownPiece
                                                                : tokens.type(id));
    const std::string& piece = tokens.pieces()[id];
    model.pieces.push_back({type == kUserDefinedPiece ? spaces.spell(piece) : piece, scores[id], type});
    if (type == kUnknownPiece) model.unknown = piece;
  }
  model.start = start ? tokens.pieces()[to_size(*start)] : "";
  model.end = tokens.pieces()[to_size(*end)];
  return TextCodec::of_pieces(Tokenizer::from_serialized(serialize(model), where));
}

TextCodec byte_codec(const GgufMetadata& metadata, const GgufTokens& tokens, const std::string& where) {
  const WordSplitter& splitter = word_splitter(metadata);
  TokenizerSpec spec;
  spec.pieces = tokens.pieces();
  for (size_t id = 0; id < spec.pieces.size(); id++)
    if (tokens.type(id) == kControlPiece || tokens.type(id) == kUserDefinedPiece)
      spec.added.push_back(
          {.id = static_cast<int32_t>(id), .text = spec.pieces[id], .special = tokens.type(id) == kControlPiece});
  BytePieces bytes{.whole_words = splitter.whole_words,
                   .compose = splitter.compose,
                   .splits = splitter.splits,
                   .space_first = metadata.flag(key_of("add_space_prefix"), false),
                   .gpt2_words = splitter.gpt2_words};
  for (const std::string& merge : metadata.texts(key_of("merges"), kMaxGgufMerges)) {
    if (merge.find('\n') != merge.npos)
      fail("{}: {}: {} is not a pair of pieces", metadata.where(), key_of("merges"), excerpt(merge));
    add_merge(merge, bytes.merges);
  }
  spec.model = std::move(bytes);
  const auto edge = [&](const char* flag, bool otherwise, const char* name) {
    if (!metadata.flag(key_of(flag), otherwise)) return std::optional<int32_t>();
    const auto id = tokens.special(name);
    if (!id) fail("{}: {} is missing, although {} is true", metadata.where(), key_of(name), key_of(flag));
    return id;
  };
  spec.before = edge("add_bos_token", splitter.starts, "bos_token_id");
  spec.after = edge("add_eos_token", false, "eos_token_id");
  return TextCodec::of_tokenizer(HuggingFaceTokenizer(std::move(spec), where));
}

}  // namespace

namespace {

// The templates tokenizer.chat_template and tokenizer.chat_template.NAME, and the special tokens.
ChatFiles gguf_chat(const GgufMetadata& metadata, const GgufTokens& tokens) {
  const std::string key = "tokenizer.chat_template";
  ChatFiles chat;
  for (const auto& [name, value] : metadata.all()) {
    if (name == key) chat.templates[kDefaultTemplate] = metadata.text(name);
    if (!name.starts_with(key + ".")) continue;
    const std::string own = name.substr(key.size() + 1);
    check_template_name(own, metadata.where());
    chat.templates[own] = metadata.text(name);
  }
  if (chat.templates.empty()) return chat;
  const auto spelling = [&](const char* name) {
    const auto id = tokens.special(name);
    return id ? tokens.pieces()[to_size(*id)] : "";
  };
  chat.tokens.bos_token = spelling("bos_token_id");
  chat.tokens.eos_token = spelling("eos_token_id");
  chat.tokens.unk_token = spelling("unknown_token_id");
  chat.tokens.pad_token = spelling("padding_token_id");
  return chat;
}

}  // namespace

LanguageText gguf_text(const GgufMetadata& metadata) {
  const std::string kind = metadata.text(key_of("model"));
  if (kind != "llama" && kind != "gpt2")
    fail("{}: {} must be llama or gpt2 (is {})", metadata.where(), key_of("model"), excerpt(kind));
  const GgufTokens tokens(metadata);
  const std::string where = metadata.where() + ": tokenizer.ggml";
  LanguageText text{
      {}, kind == "llama" ? sentencepiece_codec(metadata, tokens, where) : byte_codec(metadata, tokens, where)};
  text.config.unit = text.codec.unit();
  for (const int32_t id : tokens.ends()) text.config.ends.push_back(text.codec.piece(id));
  const auto start = tokens.special("bos_token_id");
  text.config.start = start ? text.codec.piece(*start) : text.config.ends.front();
  if (text.codec.unit() == TextUnit::pieces) text.config.start = text.codec.piece(text.codec.tokenizer().start());
  text.chat = gguf_chat(metadata, tokens);
  if (text.codec.unit() == TextUnit::pieces)
    text.chat.tokens.starts_prompts = metadata.flag(key_of("add_bos_token"), true);
  const std::string end = end_of_answer(text.chat, text.codec);
  std::vector<std::string>& ends = text.config.ends;
  if (!end.empty() && std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
  return text;
}

}  // namespace qkv
