#include "text/tokenizer_json/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/pieces/byte_pairs.h"
#include "text/pieces/vocabulary.h"
#include "text/tokenizer_json/added_tokens.h"
#include "text/tokenizer_json/json_object.h"
#include "text/tokenizer_json/pipeline.h"

namespace qkv {
namespace {

// The vocabulary and the merges of a tokenizer.json, which are read item by item: they may be long.

// model.vocab, an object of pieces and ids or an array of pieces and scores, and model.merges, an array of "a b" or
// ["a", "b"].
class ModelLists {
 public:
  // Errors are reported by check: it may be the list of another model.
  void take(const JsonItem& item);
  // Gives ids that no piece has to the added tokens with these ids.
  void fill(const std::vector<AddedToken>& added);
  // Throws Error, beginning with `where`, for lists that are broken, and for an id that no piece has.
  void check(const std::string& where) const;

  std::vector<std::string> take_pieces() { return std::move(pieces_); }  // by id
  std::vector<double> take_scores() { return std::move(scores_); }       // of an array
  std::string take_merges() { return std::move(merges_); }               // see add_pair in pipeline.h

 private:
  void add_piece(const JsonItem& item);
  void add_scored_piece(const JsonItem& item);
  void add_part_of_merge(const JsonItem& item);

  std::vector<std::string> pieces_;
  std::vector<double> scores_;
  std::string merges_, left_, wrong_;
  int64_t count_ = 0;  // merges
  bool half_ = false;  // the first piece of a pair is there
};

void ModelLists::take(const JsonItem& item) {
  if (!wrong_.empty()) return;
  if (item.list == "merges")
    add_part_of_merge(item);
  else if (item.depth == 2)
    add_scored_piece(item);
  else
    add_piece(item);
}

void ModelLists::fill(const std::vector<AddedToken>& added) {
  for (const AddedToken& token : added)
    if (token.id < std::ssize(pieces_) && pieces_[to_size(token.id)].empty()) pieces_[to_size(token.id)] = token.text;
}

void ModelLists::check(const std::string& where) const {
  if (!wrong_.empty()) fail("{}: {}", where, wrong_);
  if (half_) fail("{}: model.merges: a merge of one piece, expected two", where);
  const auto gap = std::ranges::find(pieces_, "");
  if (gap != pieces_.end()) fail("{}: model.vocab: no piece has id {}", where, gap - pieces_.begin());
}

void ModelLists::add_piece(const JsonItem& item) {
  if (item.depth > 1 || item.name.empty() || item.kind != JsonItem::Kind::number || item.number >= kMaxPieces) {
    wrong_ = fmt::format("model.vocab: {} has no id from 0 to {}", excerpt(item.name), kMaxPieces - 1);
    return;
  }
  if (item.number >= pieces_.size()) pieces_.resize(item.number + 1);
  if (!pieces_[item.number].empty())
    wrong_ = fmt::format("model.vocab: {} and {} have the id {}", excerpt(pieces_[item.number]), excerpt(item.name),
                         item.number);
  pieces_[item.number] = item.name;
}

// ["a", -1.5]: the next piece and its score.
void ModelLists::add_scored_piece(const JsonItem& item) {
  if (item.place == 0 && item.kind == JsonItem::Kind::string && pieces_.size() == scores_.size())
    pieces_.emplace_back(item.text);
  else if (item.place == 1 && item.kind != JsonItem::Kind::string && item.kind != JsonItem::Kind::other &&
           pieces_.size() == scores_.size() + 1)
    scores_.push_back(item.real);
  else
    wrong_ = fmt::format("model.vocab: entry {} must be a piece and its score", scores_.size());
  if (pieces_.size() > kMaxPieces) wrong_ = fmt::format("model.vocab: more than {} pieces", kMaxPieces);
}

// "a b", or ["a", "b"].
void ModelLists::add_part_of_merge(const JsonItem& item) {
  const bool whole = item.depth == 1 && !half_;
  const bool part = item.depth == 2 && item.place == (half_ ? 1 : 0);
  if (item.kind != JsonItem::Kind::string || !item.name.empty() || !(whole || part)) {
    wrong_ = fmt::format("model.merges: {} is not a part of a pair of pieces", excerpt(item.text));
    return;
  }
  if (part) {
    if (half_) add_pair(left_, item.text, merges_);
    left_ = item.text;
    count_ += half_;
    half_ = !half_;
    return;
  }
  if (item.text.starts_with("#version")) return;
  const size_t space = item.text.find(' ');
  count_++;
  if (space == item.text.npos || item.text.find(' ', space + 1) != item.text.npos)
    wrong_ = fmt::format("merge {} is {}, expected two pieces with a space between", count_, excerpt(item.text));
  else
    add_pair(item.text.substr(0, space), item.text.substr(space + 1), merges_);
}

// The post-processor of a tokenizer.json: the tokens around a text.

using nlohmann::json;

// A token of the post-processor: one at most on each side of the text.
void put_around(const json& id, const std::string& where, bool behind, TokenizerSpec& spec) {
  if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
    fail("{} is {}, expected an id", where, JsonObject::describe(id));
  std::optional<int32_t>& side = behind ? spec.after : spec.before;
  if (side) fail("{}: two tokens {} a text, expected one at most", where, behind ? "behind" : "before");
  side = id.get<int32_t>();
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids": [0]}}}
void read_template(const json& value, const std::string& where, TokenizerSpec& spec) {
  const JsonObject object(value, where, {"type", "single", "pair", "special_tokens"});
  const json* tokens = object.find("special_tokens");
  bool behind = false;
  for (const json& part : object.array("single")) {
    const JsonObject either(part, object.at("single"), {"SpecialToken", "Sequence"});
    if (either.find("Sequence")) {
      if (behind) fail("{}: two times the text", either.where());
      behind = true;
      continue;
    }
    if (!either.find("SpecialToken")) either.wrong("SpecialToken", "an object");
    const std::string name =
        JsonObject(*either.find("SpecialToken"), either.at("SpecialToken"), {"id", "type_id"}).text("id");
    const auto token = tokens && tokens->is_object() ? tokens->find(name) : json::const_iterator();
    if (!tokens || !tokens->is_object() || token == tokens->end())
      fail("{}: {} is not there", object.at("special_tokens"), excerpt(name));
    for (const json& id : JsonObject(*token, object.at("special_tokens"), {"id", "ids", "tokens"}).array("ids"))
      put_around(id, object.at("special_tokens"), behind, spec);
  }
  if (!behind) fail("{}: without the text", object.at("single"));
}

// Sets spec.before and spec.after: TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel, a Sequence of
// them, or null. Throws Error, beginning with `where`, for others, and for more than one token on a side.
void read_post_processor(const json* value, const std::string& where, TokenizerSpec& spec) {
  for (const auto& [step, place] : steps_of(value, where, "processors")) {
    const std::string type = type_of(step);
    if (type == "ByteLevel") continue;  // changes where tokens are said to begin, not which they are
    if (type == "TemplateProcessing") {
      read_template(*step, place, spec);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      const JsonObject object(*step, place, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
      for (const char* name : {"cls", "sep"}) {
        const json& pair = object.array(name);  // the token and its id
        if (pair.size() != 2) object.wrong(name, "a token and its id");
        put_around(pair[1], object.at(name), name == std::string_view("sep"), spec);
      }
    } else {
      fail("{}: type is {}, expected TemplateProcessing, RobertaProcessing, BertProcessing or ByteLevel", place,
           excerpt(type));
    }
  }
}

using Steps = std::vector<std::pair<const json*, std::string>>;

constexpr int64_t kMaxCharacters = 10'000;  // of a word: time may grow with the square of it

// The pattern of a Split that word_pattern.h knows.
std::optional<WordPattern> known_split(const json& value) {
  const json invert = value.value("invert", json(false)), pattern = value.value("pattern", json());
  if (!pattern.is_object() || !pattern.contains("Regex") || !pattern.at("Regex").is_string()) return {};
  if (value.value("behavior", json()) != (invert == true ? "Removed" : "Isolated")) return {};
  return pattern_of(pattern.at("Regex").get_ref<const std::string&>());
}

bool is_known_word_step(const json* step) {
  return type_of(step) == "Digits" || (type_of(step) == "Split" && known_split(*step));
}

// Whether the model works on bytes: those of words that word_pattern.h finds, in normal form C or as they are.
bool is_byte_level(const JsonObject& root, const json& model, const std::vector<std::string>& pieces) {
  if (type_of(root.find("decoder")) != "ByteLevel") return false;
  for (const auto& [step, place] : steps_of(root.find("normalizer"), root.at("normalizer"), "normalizers"))
    if (type_of(step) != "NFC") return false;
  const Steps words = steps_of(root.find("pre_tokenizer"), root.at("pre_tokenizer"), "pretokenizers");
  if (words.empty() || type_of(words.back().first) != "ByteLevel") return false;
  if (!std::all_of(words.begin(), words.end() - 1, [](const auto& step) { return is_known_word_step(step.first); }))
    return false;
  const auto has = [&](const char* name) { return model.contains(name) && !model.at(name).is_null(); };
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (has(name) && model.at(name) != "") return false;
  return !(has("unk_token") || model.value("byte_fallback", json(false)) == true) || !byte_without_piece(pieces);
}

// Whether the model is BERT's, with its own words.
bool is_bert(const JsonObject& root) {
  const std::string decoder = type_of(root.find("decoder"));
  return type_of(root.find("normalizer")) == "BertNormalizer" &&
         type_of(root.find("pre_tokenizer")) == "BertPreTokenizer" && (decoder == "WordPiece" || decoder == "null");
}

void read_byte_words(const json* value, const std::string& where, BytePieces& model) {
  for (const auto& [step, place] : steps_of(value, where, "pretokenizers")) {
    const std::string type = type_of(step);
    if (type == "Split") {
      const JsonObject split(*step, place, {"type", "pattern", "behavior", "invert"});
      model.splits.push_back(*known_split(*step));
    } else if (type == "Digits") {
      const JsonObject digits(*step, place, {"type", "individual_digits"});
      model.splits.push_back(digits.flag("individual_digits", false) ? WordPattern::digit : WordPattern::digits);
    } else {
      const JsonObject bytes(*step, place, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
      model.space_first = bytes.flag("add_prefix_space", true);
      model.gpt2_words = bytes.flag("use_regex", true);
    }
  }
}

// A pair a line, "Ġ t".
std::string merge_lines(const std::string& merges, const std::string& where) {
  std::string lines;
  for (const auto& [left, right] : pairs_of(merges)) {
    for (const std::string_view piece : {left, right})
      if (piece.find_first_of(" \n") != piece.npos)
        fail("{}: model.merges: {} is not a part of a pair of pieces without spaces", where, excerpt(piece));
    lines.append(left).append(" ").append(right).append("\n");
  }
  return lines;
}

JsonObject pairs_object(const JsonObject& root, const json& model) {
  JsonObject object(model, root.at("model"),
                    {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                     "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (const json* dropout = object.find("dropout"); dropout && *dropout != 0) object.wrong("dropout", "none");
  return object;
}

BytePieces read_byte_pieces(const JsonObject& root, const json& value, const std::string& merges,
                            const std::string& where) {
  const JsonObject object = pairs_object(root, value);
  BytePieces model;
  model.merges = merge_lines(merges, where);
  model.whole_words = object.flag("ignore_merges", false);
  model.compose = root.find("normalizer") != nullptr;
  read_byte_words(root.find("pre_tokenizer"), root.at("pre_tokenizer"), model);
  return model;
}

PairsModel read_pairs(const JsonObject& root, const json& value, std::string merges) {
  const JsonObject object = pairs_object(root, value);
  PairsModel model{.merges = std::move(merges)};
  if (object.find("unk_token")) model.options.unknown = object.text("unk_token");
  model.options.prefix = object.text("continuing_subword_prefix", "");
  model.options.suffix = object.text("end_of_word_suffix", "");
  model.options.fuse_unknown = object.flag("fuse_unk", false);
  model.options.byte_fallback = object.flag("byte_fallback", false);
  model.options.whole_words = object.flag("ignore_merges", false);
  return model;
}

UnigramModel read_unigram(const JsonObject& root, const json& value, std::vector<double> scores) {
  const JsonObject object(value, root.at("model"), {"type", "unk_id", "vocab", "byte_fallback"});
  UnigramModel model{.scores = std::move(scores)};
  if (object.find("unk_id")) model.unknown = static_cast<int32_t>(object.integer("unk_id"));
  model.byte_fallback = object.flag("byte_fallback", false);
  return model;
}

LongestModel read_longest(const JsonObject& root, const json& value) {
  const JsonObject object(value, root.at("model"),
                          {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  LongestModel model;
  model.unknown = object.text("unk_token");
  model.continuation = object.text("continuing_subword_prefix");
  model.max_characters = object.integer("max_input_chars_per_word");
  if (model.max_characters > kMaxCharacters) object.wrong("max_input_chars_per_word", "at most 10000");
  return model;
}

WordPieceModel read_bert(const JsonObject& root, const json& value) {
  LongestModel words = read_longest(root, value);
  return {.unknown = std::move(words.unknown),
          .continuation = std::move(words.continuation),
          .max_characters = words.max_characters,
          .cleaning = read_bert_cleaning(*root.find("normalizer"), root.at("normalizer"))};
}

WholeWordsModel read_whole_words(const JsonObject& root, const json& value) {
  return {JsonObject(value, root.at("model"), {"type", "vocab", "unk_token"}).text("unk_token", "<unk>")};
}

AddedToken read_added(const json& value, const std::string& where) {
  const JsonObject object(value, where, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  return {.id = static_cast<int32_t>(object.integer("id")),
          .text = object.text("content"),
          .single_word = object.flag("single_word", false),
          .strips_left = object.flag("lstrip", false),
          .strips_right = object.flag("rstrip", false),
          .normalized = object.flag("normalized", true),
          .special = object.flag("special", false)};
}

// Old files do not say it.
std::string model_type(const JsonObject& root) {
  const json* model = root.find("model");
  if (!model || !model->is_object()) root.wrong("model", "an object");
  if (model->contains("type")) return type_of(model);
  return model->contains("merges")                     ? "BPE"
         : model->contains("max_input_chars_per_word") ? "WordPiece"
         : model->contains("unk_id")                   ? "Unigram"
                                                       : "unknown";
}

PipelineSpec read_pipeline(const JsonObject& root, const std::string& type, const json& model, ModelLists& lists) {
  const auto part = [&](const char* name) { return root.find(name) ? root.find(name)->dump() : ""; };
  PipelineSpec spec{part("normalizer"), part("pre_tokenizer"), part("decoder"), {}};
  if (type == "BPE") spec.model = read_pairs(root, model, lists.take_merges());
  if (type == "Unigram") spec.model = read_unigram(root, model, lists.take_scores());
  if (type == "WordPiece") spec.model = read_longest(root, model);
  if (type == "WordLevel") spec.model = read_whole_words(root, model);
  return spec;
}

}  // namespace

void add_merge(std::string_view merge, std::string& merges) {
  if (!merge.starts_with("#version")) merges.append(merge).append("\n");
}

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& where, Edges edges) {
  constexpr std::array<std::string_view, 2> kLists = {"vocab", "merges"};
  ModelLists lists;
  const json value = parse_json_lists(text, where, "model", kLists, [&](const JsonItem& item) { lists.take(item); });
  const JsonObject root(value, where + ":",
                        {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                         "post_processor", "decoder", "model"});
  const std::string type = model_type(root);
  if (type != "BPE" && type != "Unigram" && type != "WordPiece" && type != "WordLevel")
    fail("{}: model.type is {}, expected BPE, Unigram, WordPiece or WordLevel", where, excerpt(type));
  TokenizerSpec spec;
  if (root.find("added_tokens"))
    for (const json& token : root.array("added_tokens"))
      spec.added.push_back(read_added(token, fmt::format("{}[{}]", root.at("added_tokens"), spec.added.size())));
  lists.fill(spec.added);
  lists.check(where);
  spec.pieces = lists.take_pieces();
  const json& model = value.at("model");
  if (type == "BPE" && is_byte_level(root, model, spec.pieces))
    spec.model = read_byte_pieces(root, model, lists.take_merges(), where);
  else if (type == "WordPiece" && is_bert(root))
    spec.model = read_bert(root, model);
  else
    spec.model = read_pipeline(root, type, model, lists);
  if (edges == Edges::read) read_post_processor(root.find("post_processor"), root.at("post_processor"), spec);
  return spec;
}

}  // namespace qkv
