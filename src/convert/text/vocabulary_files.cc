#include "convert/text/vocabulary_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "text/pieces/byte_pairs.h"
#include "text/pieces/vocabulary.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr const char* kTokenNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

Settings settings_or_none(const ModelFiles& files, const std::string& name) {
  if (!files.has(name)) return Settings("{}", files.path(name));
  return Settings(files.open_small(name)->text(), files.path(name));
}

// Returns the class of the tokenizer without the suffix of fast ones, or "" if the settings name none.
std::string class_of(const Settings& settings) {
  std::string name = settings.text("tokenizer_class", "");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

// The special tokens that the files of a model name.
class NamedTokens {
 public:
  NamedTokens(const ModelFiles& files, const Settings& settings, std::map<std::string, std::string> names)
      : map_(settings_or_none(files, "special_tokens_map.json")), names_(std::move(names)) {
    for (const char* name : kTokenNames)
      for (const Settings* from : {&std::as_const(map_), &settings})
        if (const std::string token = token_of(*from, name); !token.empty()) names_[name] = token;
    if (const json* list = map_.find("additional_special_tokens"); list && list->is_array())
      for (const json& token : *list) names_[fmt::format("additional {}", others_++)] = spelling(token, map_.where());
    added_ = added_tokens_of(settings);
    if (!added_.empty()) return;
    if (!files.has("added_tokens.json")) return;
    const std::string where = files.path("added_tokens.json");
    const json ids = parse_json(files.open_small("added_tokens.json")->text(), where);
    if (!ids.is_object()) fail("{}: must be an object of tokens and ids", where);
    for (const auto& [token, id] : ids.items()) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
        fail("{}: the id of {} must be an integer from 0 (is {})", where, excerpt(token), id.dump());
      added_.push_back({.id = id.get<int32_t>(), .text = token, .normalized = true, .special = false});
    }
  }

  const std::string& name(const std::string& of) const { return names_.at(of); }

  // Returns all of them in the order of their ids. A special token that is not in the vocabulary is left out.
  std::vector<AddedToken> take(const std::vector<std::string>& pieces) {
    for (const auto& [name, text] : names_) {
      const auto place = std::ranges::find(pieces, text);
      const auto same = std::ranges::find(added_, text, &AddedToken::text);
      const bool is_mask = name == "mask_token" && text == "<mask>";  // takes the space before it
      if (same != added_.end()) {
        same->special = true;
        same->normalized = false;
      } else if (place != pieces.end()) {
        added_.push_back({.id = static_cast<int32_t>(place - pieces.begin()), .text = text, .strips_left = is_mask});
      }
    }
    std::ranges::sort(added_, {}, &AddedToken::id);
    return std::move(added_);
  }

  static std::string spelling(const json& token, const std::string& where) {
    const json* text = token.is_object() && token.contains("content") ? &token.at("content") : &token;
    if (!text->is_string())
      fail("{}: a token must be a string, or an object with its content (is {})", where,
           token.is_structured() ? token.type_name() : token.dump());
    return text->get<std::string>();
  }

 private:
  Settings map_;
  std::map<std::string, std::string> names_;
  int others_ = 0;
  std::vector<AddedToken> added_;
};

std::optional<int32_t> id_of(const TokenizerSpec& spec, const std::string& token, const std::string& where) {
  const auto place = std::ranges::find(spec.pieces, token);
  if (place == spec.pieces.end()) fail("{}: the token {} is not in the vocabulary", where, excerpt(token));
  return static_cast<int32_t>(place - spec.pieces.begin());
}

std::string read_merges(const ModelFiles& files) {
  const auto bytes = files.open_small("merges.txt");
  std::string merges;
  for (const std::string& line : pieces_from_lines(bytes->text(), files.path("merges.txt")))
    if (!line.empty()) add_merge(line, merges);
  return merges;
}

}  // namespace

std::vector<std::string> parse_piece_ids(std::string_view text, const std::string& where) {
  const json object = parse_json(text, where);
  if (!object.is_object()) fail("{}: must be a JSON object of pieces and ids", where);
  std::vector<std::string> pieces(object.size());
  std::vector<char> taken(object.size(), 0);
  for (const auto& [piece, id] : object.items()) {
    if (!id.is_number_unsigned()) fail("{}: the id of {} must be a whole number from 0", where, excerpt(piece));
    const uint64_t i = id.get<uint64_t>();
    if (i >= pieces.size())
      fail("{}: the id of {} must be below {}, the number of pieces (is {})", where, excerpt(piece), pieces.size(), i);
    if (taken[i]) fail("{}: {} and {} both have the id {}", where, excerpt(pieces[i]), excerpt(piece), i);
    taken[i] = 1;
    pieces[i] = piece;
  }
  return pieces;
}

Settings read_tokenizer_config(const ModelFiles& files) { return settings_or_none(files, "tokenizer_config.json"); }

std::string token_of(const Settings& settings, const std::string& name) {
  const json* token = settings.find(name);
  return token ? NamedTokens::spelling(*token, settings.where() + ": " + name) : "";
}

std::vector<AddedToken> added_tokens_of(const Settings& settings) {
  const json* tokens = settings.find("added_tokens_decoder");
  std::vector<AddedToken> added;
  if (!tokens) return added;
  if (!tokens->is_object()) fail("{}: added_tokens_decoder must be an object", settings.where());
  for (const auto& [id, token] : tokens->items()) {
    const std::string where = fmt::format("{}: added_tokens_decoder {}", settings.where(), excerpt(id));
    AddedToken read;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), read.id);
    if (error != std::errc() || end != id.data() + id.size() || read.id < 0) fail("{}: not an id", where);
    const Settings own(token.dump(), where);
    read.text = own.text("content");
    read.single_word = own.flag("single_word", false);
    read.strips_left = own.flag("lstrip", false);
    read.strips_right = own.flag("rstrip", false);
    read.special = own.flag("special", false);
    read.normalized = own.flag("normalized", !read.special);
    added.push_back(read);
  }
  std::ranges::sort(added, {}, &AddedToken::id);
  return added;
}

SpelledTokens spelled_tokens(const ModelFiles& files, std::vector<std::string> of_class, const std::string& mask,
                             const std::vector<std::string>& pieces) {
  const Settings settings = read_tokenizer_config(files);
  std::map<std::string, std::string> names;
  for (std::string& token : of_class) names[fmt::format("class {}", names.size())] = std::move(token);
  std::vector<AddedToken> tokens = NamedTokens(files, settings, std::move(names)).take(pieces);
  const std::vector<AddedToken> listed = added_tokens_of(settings);
  std::map<std::string, const AddedToken*> by_text;
  for (AddedToken& token : tokens) {
    const bool is_listed = std::ranges::find(listed, token.text, &AddedToken::text) != listed.end();
    if (token.text == mask && !is_listed) token.strips_left = true;
    if (token.single_word)
      fail("{}: not supported with a SentencePiece model: single_word of {}", settings.where(), excerpt(token.text));
    by_text.emplace(token.text, &token);
  }
  SpelledTokens spelled;
  for (const std::string& piece : pieces) {
    const auto token = by_text.find(piece);
    if (token == by_text.end()) continue;
    spelled.all.push_back(piece);
    if (token->second->strips_left) spelled.strips_left.push_back(piece);
    if (token->second->strips_right) spelled.strips_right.push_back(piece);
  }
  return spelled;
}

TokenizerSpec read_vocabulary_and_merges(const ModelFiles& files, const std::string& tokenizer_class) {
  const Settings settings = read_tokenizer_config(files);
  std::string kind = class_of(settings);
  if (kind.empty()) kind = tokenizer_class;
  TokenizerSpec spec;
  spec.pieces = parse_piece_ids(files.open_small("vocab.json")->text(), files.path("vocab.json"));
  if (const auto byte = byte_without_piece(spec.pieces))
    fail("{}: the vocabulary has no piece of the byte {}, expected one of each", files.path("vocab.json"), *byte);
  BytePieces bytes;
  bytes.merges = read_merges(files);
  bytes.space_first = settings.flag("add_prefix_space", false);
  std::map<std::string, std::string> names;
  const bool is_roberta = kind == "RobertaTokenizer" || kind == "BartTokenizer";
  if (kind == "GPT2Tokenizer") {
    names = {{"bos_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}, {"unk_token", "<|endoftext|>"}};
  } else if (kind == "Qwen2Tokenizer") {
    names = {{"eos_token", "<|endoftext|>"}};
    bytes.compose = true;
    bytes.splits = {WordPattern::qwen2};
    bytes.gpt2_words = false;
  } else if (is_roberta) {
    names = {{"bos_token", "<s>"},   {"eos_token", "</s>"},  {"sep_token", "</s>"},   {"cls_token", "<s>"},
             {"unk_token", "<unk>"}, {"pad_token", "<pad>"}, {"mask_token", "<mask>"}};
  } else {
    fail("{}: tokenizer_class must be GPT2Tokenizer, RobertaTokenizer, BartTokenizer or Qwen2Tokenizer (is {})",
         settings.where(), excerpt(kind));
  }
  NamedTokens tokens(files, settings, std::move(names));
  if (is_roberta) {
    spec.before = id_of(spec, tokens.name("cls_token"), files.path("vocab.json"));
    spec.after = id_of(spec, tokens.name("sep_token"), files.path("vocab.json"));
  } else if (settings.flag("add_bos_token", false)) {  // OPT
    if (kind != "GPT2Tokenizer")
      fail("{}: add_bos_token must be false without a tokenizer.json (is true)", settings.where());
    spec.before = id_of(spec, tokens.name("bos_token"), files.path("vocab.json"));
  }
  spec.added = tokens.take(spec.pieces);
  spec.model = std::move(bytes);
  return spec;
}

TokenizerSpec read_vocabulary_lines(const ModelFiles& files) {
  const Settings settings = read_tokenizer_config(files);
  const std::string kind = class_of(settings);
  const bool mpnet = kind == "MPNetTokenizer";
  if (!mpnet && !std::set<std::string>{"", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"}.contains(kind))
    fail("{}: tokenizer_class must be BertTokenizer, DistilBertTokenizer, ElectraTokenizer or MPNetTokenizer (is {})",
         settings.where(), excerpt(kind));
  if (!settings.flag("do_basic_tokenize", true))
    fail("{}: do_basic_tokenize must be true (is false)", settings.where());
  if (settings.find("never_split")) fail("{}: not supported: never_split", settings.where());
  TokenizerSpec spec;
  spec.pieces = pieces_from_lines(files.open_small("vocab.txt")->text(), files.path("vocab.txt"));
  NamedTokens tokens(files, settings,
                     {{"unk_token", "[UNK]"},
                      {"sep_token", mpnet ? "</s>" : "[SEP]"},
                      {"pad_token", mpnet ? "<pad>" : "[PAD]"},
                      {"cls_token", mpnet ? "<s>" : "[CLS]"},
                      {"mask_token", mpnet ? "<mask>" : "[MASK]"}});
  spec.before = id_of(spec, tokens.name("cls_token"), files.path("vocab.txt"));
  spec.after = id_of(spec, tokens.name("sep_token"), files.path("vocab.txt"));
  WordPieceModel words;
  words.unknown = tokens.name("unk_token");
  words.cleaning.lowercase = settings.flag("do_lower_case", true);
  words.cleaning.strip_accents = settings.flag("strip_accents", words.cleaning.lowercase);
  words.cleaning.space_chinese = settings.flag("tokenize_chinese_chars", true);
  spec.added = tokens.take(spec.pieces);
  spec.model = words;
  return spec;
}

}  // namespace qkv
