#include "text/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "text/byte_pairs.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int64_t kMaxCharacters = 10'000;  // of a word: time may grow with the square of it

// model.vocab and model.merges, as they are read. Errors are reported later: it may be the list of another model.
class Lists {
 public:
  void take(const JsonItem& item) {
    if (!wrong_.empty()) return;
    if (item.list == "vocab")
      add_piece(item);
    else
      add_part_of_merge(item);
  }
  void check(const std::string& where) const {
    if (!wrong_.empty()) fail("{}: {}", where, wrong_);
    if (half_) fail("{}: model.merges: a merge of one piece, expected two", where);
    const auto gap = std::ranges::find(pieces_, "");
    if (gap != pieces_.end()) fail("{}: model.vocab: no piece has id {}", where, gap - pieces_.begin());
  }
  std::vector<std::string> take_pieces() { return std::move(pieces_); }
  std::string take_merges() { return std::move(merges_); }

 private:
  void add_piece(const JsonItem& item) {
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

  // "a b", or ["a", "b"].
  void add_part_of_merge(const JsonItem& item) {
    const bool whole = item.depth == 1 && !half_;
    const bool part = item.depth == 2 && item.place == (half_ ? 1 : 0) && item.text.find(' ') == item.text.npos;
    if (item.kind != JsonItem::Kind::string || !item.name.empty() || item.text.find('\n') != item.text.npos ||
        !(whole || part)) {
      wrong_ = fmt::format("model.merges: {} is not a part of a pair of pieces without spaces", excerpt(item.text));
      return;
    }
    if (whole) {
      add_merge(item.text, merges_);
    } else {
      merges_ += item.text;
      merges_ += half_ ? '\n' : ' ';
      half_ = !half_;
    }
  }

  std::vector<std::string> pieces_;
  std::string merges_, wrong_;
  bool half_ = false;  // the first piece of a pair is there
};

// An object in the file, and where it is: "tokenizer.json: model".
class Object {
 public:
  Object(const json& value, std::string where, std::initializer_list<std::string_view> members)
      : value_(value), where_(std::move(where)) {
    if (!value.is_object()) fail("{} is {}, expected an object", where_, describe(value));
    for (const auto& [name, member] : value.items())
      if (std::ranges::find(members, name) == members.end()) fail("{} is not supported", at(excerpt(name)));
  }

  // The member; null if it is missing or null.
  const json* find(const std::string& name) const {
    const auto place = value_.find(name);
    return place == value_.end() || place->is_null() ? nullptr : &*place;
  }
  std::string at(std::string_view name) const {
    return fmt::format("{}{}{}", where_, where_.ends_with(':') ? " " : ".", name);
  }
  const std::string& where() const { return where_; }

  bool flag(const std::string& name, bool otherwise) const {
    const json* found = find(name);
    if (found && !found->is_boolean()) wrong(name, "true or false");
    return found ? found->get<bool>() : otherwise;
  }
  std::string text(const std::string& name) const {
    const json* found = find(name);
    if (!found || !found->is_string()) wrong(name, "a string");
    return found->get<std::string>();
  }
  std::string text(const std::string& name, const std::string& otherwise) const {
    return find(name) ? text(name) : otherwise;
  }
  int64_t integer(const std::string& name) const {
    const json* found = find(name);
    if (!found || !found->is_number_unsigned() || found->get<uint64_t>() > INT32_MAX) wrong(name, "an integer from 0");
    return found->get<int64_t>();
  }
  const json& array(const std::string& name) const {
    const json* found = find(name);
    if (!found || !found->is_array()) wrong(name, "an array");
    return *found;
  }

  [[noreturn]] void wrong(const std::string& name, std::string_view expected) const {
    const json* found = find(name);
    fail("{} is {}, expected {}", at(name), found ? describe(*found) : "missing", expected);
  }
  static std::string describe(const json& value) {
    if (value.is_string()) return excerpt(value.get_ref<const std::string&>());
    return value.is_structured() ? fmt::format("an {}", value.type_name()) : value.dump();
  }

 private:
  const json& value_;
  const std::string where_;
};

// "type" of an object, "null" of none.
std::string type_of(const json* value) {
  if (!value) return "null";
  const auto type = value->is_object() ? value->find("type") : value->end();
  return type != value->end() && type->is_string() ? type->get<std::string>() : Object::describe(*value);
}

// The steps of a normalizer or of another part of the file: those of a Sequence, or the one there is.
std::vector<std::pair<const json*, std::string>> steps_of(const json* value, const std::string& where,
                                                          const std::string& list) {
  if (!value) return {};
  if (type_of(value) != "Sequence") return {{value, where}};
  const Object sequence(*value, where, {"type", list});
  std::vector<std::pair<const json*, std::string>> steps;
  for (const json& step : sequence.array(list))
    steps.emplace_back(&step, fmt::format("{}[{}]", sequence.at(list), steps.size()));
  return steps;
}

WordPattern read_split(const json& value, const std::string& where) {
  const Object split(value, where, {"type", "pattern", "behavior", "invert"});
  const json* found = split.find("pattern");
  if (!found) split.wrong("pattern", "an object");
  const std::string expression = Object(*found, split.at("pattern"), {"Regex"}).text("Regex");
  const auto pattern = pattern_of(expression);
  if (!pattern)
    fail("{} is {}, expected that of GPT-2, Llama 3, Qwen 2 or Qwen 3.5", split.at("pattern.Regex"),
         json_string(expression));
  const bool invert = split.flag("invert", false);
  if (split.text("behavior") != (invert ? "Removed" : "Isolated"))
    split.wrong("behavior", invert ? "\"Removed\" with invert" : "\"Isolated\"");
  return *pattern;
}

void read_byte_words(const json* value, const std::string& where, BytePieces& model) {
  const auto steps = steps_of(value, where, "pretokenizers");
  for (size_t i = 0; i < steps.size(); i++) {
    const auto& [step, place] = steps[i];
    const std::string type = type_of(step);
    const bool last = i + 1 == steps.size();
    if (type == "Split" && !last) {
      model.splits.push_back(read_split(*step, place));
    } else if (type == "Digits" && !last) {
      const Object digits(*step, place, {"type", "individual_digits"});
      model.splits.push_back(digits.flag("individual_digits", false) ? WordPattern::digit : WordPattern::digits);
    } else if (type == "ByteLevel" && last) {
      const Object bytes(*step, place, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
      model.space_first = bytes.flag("add_prefix_space", true);
      model.gpt2_words = bytes.flag("use_regex", true);
    } else {
      fail("{}: type is {}, expected {}", place, excerpt(type), last ? "ByteLevel" : "Split or Digits");
    }
  }
  if (steps.empty()) fail("{} is null, expected ByteLevel, or a Sequence that ends with it", where);
}

BytePieces read_byte_pieces(const Object& root, const json& value) {
  const Object object(value, root.at("model"),
                      {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                       "byte_fallback", "ignore_merges", "vocab", "merges"});
  BytePieces model;
  if (const json* dropout = object.find("dropout"); dropout && *dropout != 0) object.wrong("dropout", "none");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (object.text(name, "") != "") object.wrong(name, "none, as bytes have");
  model.whole_words = object.flag("ignore_merges", false);
  for (const auto& [step, place] : steps_of(root.find("normalizer"), root.at("normalizer"), "normalizers")) {
    if (type_of(step) != "NFC") fail("{}: type is {}, expected NFC, or no normalizer", place, excerpt(type_of(step)));
    model.compose = true;
  }
  read_byte_words(root.find("pre_tokenizer"), root.at("pre_tokenizer"), model);
  if (type_of(root.find("decoder")) != "ByteLevel")
    fail("{}: type is {}, expected ByteLevel", root.at("decoder"), excerpt(type_of(root.find("decoder"))));
  return model;
}

WordPieceModel read_word_pieces(const Object& root, const json& value) {
  const Object object(value, root.at("model"),
                      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  WordPieceModel model;
  model.unknown = object.text("unk_token");
  model.continuation = object.text("continuing_subword_prefix");
  model.max_characters = object.integer("max_input_chars_per_word");
  if (model.max_characters > kMaxCharacters) object.wrong("max_input_chars_per_word", "at most 10000");
  if (type_of(root.find("normalizer")) != "BertNormalizer")
    fail("{}: type is {}, expected BertNormalizer", root.at("normalizer"), excerpt(type_of(root.find("normalizer"))));
  const Object cleaning(*root.find("normalizer"), root.at("normalizer"),
                        {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  model.cleaning.clean_text = cleaning.flag("clean_text", true);
  model.cleaning.space_chinese = cleaning.flag("handle_chinese_chars", true);
  model.cleaning.lowercase = cleaning.flag("lowercase", true);
  model.cleaning.strip_accents = cleaning.flag("strip_accents", model.cleaning.lowercase);
  if (type_of(root.find("pre_tokenizer")) != "BertPreTokenizer")
    fail("{}: type is {}, expected BertPreTokenizer", root.at("pre_tokenizer"),
         excerpt(type_of(root.find("pre_tokenizer"))));
  if (const std::string type = type_of(root.find("decoder")); type != "WordPiece" && type != "null")
    fail("{}: type is {}, expected WordPiece", root.at("decoder"), excerpt(type));
  return model;
}

AddedToken read_added(const json& value, const std::string& where) {
  const Object object(value, where, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  return {.id = static_cast<int32_t>(object.integer("id")),
          .text = object.text("content"),
          .single_word = object.flag("single_word", false),
          .strips_left = object.flag("lstrip", false),
          .strips_right = object.flag("rstrip", false),
          .normalized = object.flag("normalized", true),
          .special = object.flag("special", false)};
}

// A token of the post-processor: one at most on each side of the text.
void put_around(const json& id, const std::string& where, bool behind, TokenizerSpec& spec) {
  if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
    fail("{} is {}, expected an id", where, Object::describe(id));
  std::optional<int32_t>& side = behind ? spec.after : spec.before;
  if (side) fail("{}: two tokens {} a text, expected one at most", where, behind ? "behind" : "before");
  side = id.get<int32_t>();
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids": [0]}}}
void read_template(const json& value, const std::string& where, TokenizerSpec& spec) {
  const Object object(value, where, {"type", "single", "pair", "special_tokens"});
  const json* tokens = object.find("special_tokens");
  bool behind = false;
  for (const json& part : object.array("single")) {
    const Object either(part, object.at("single"), {"SpecialToken", "Sequence"});
    if (either.find("Sequence")) {
      if (behind) fail("{}: two times the text", either.where());
      behind = true;
      continue;
    }
    if (!either.find("SpecialToken")) either.wrong("SpecialToken", "an object");
    const std::string name =
        Object(*either.find("SpecialToken"), either.at("SpecialToken"), {"id", "type_id"}).text("id");
    const auto token = tokens && tokens->is_object() ? tokens->find(name) : json::const_iterator();
    if (!tokens || !tokens->is_object() || token == tokens->end())
      fail("{}: {} is not there", object.at("special_tokens"), excerpt(name));
    for (const json& id : Object(*token, object.at("special_tokens"), {"id", "ids", "tokens"}).array("ids"))
      put_around(id, object.at("special_tokens"), behind, spec);
  }
  if (!behind) fail("{}: without the text", object.at("single"));
}

void read_post_processor(const json* value, const std::string& where, TokenizerSpec& spec) {
  for (const auto& [step, place] : steps_of(value, where, "processors")) {
    const std::string type = type_of(step);
    if (type == "ByteLevel") continue;  // changes where tokens are said to begin, not which they are
    if (type == "TemplateProcessing") {
      read_template(*step, place, spec);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      const Object object(*step, place, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
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

// Old files do not say it.
std::string model_type(const Object& root) {
  const json* model = root.find("model");
  if (!model || !model->is_object()) root.wrong("model", "an object");
  if (model->contains("type")) return type_of(model);
  return model->contains("merges") ? "BPE" : model->contains("max_input_chars_per_word") ? "WordPiece" : "unknown";
}

// A byte without a piece would become the unknown token, which the format of runs lacks.
void require_bytes(const json& model, const TokenizerSpec& spec, const std::string& where) {
  const auto unknown = model.find("unk_token");
  if (unknown == model.end() || unknown->is_null()) return;
  std::vector<std::string> pieces = spec.pieces;
  for (const AddedToken& token : spec.added) pieces.push_back(token.text);
  if (const auto byte = byte_without_piece(pieces))
    fail("{}: the vocabulary has no piece of the byte {}, which model.unk_token {} would replace", where, *byte,
         excerpt(unknown->dump()));
}

}  // namespace

void add_merge(std::string_view merge, std::string& merges) {
  if (!merge.starts_with("#version")) merges.append(merge).append("\n");
}

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& where) {
  constexpr std::array<std::string_view, 2> kLists = {"vocab", "merges"};
  Lists lists;
  const json value = parse_json_lists(text, where, "model", kLists, [&](const JsonItem& item) { lists.take(item); });
  const Object root(value, where + ":",
                    {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
  TokenizerSpec spec;
  const std::string type = model_type(root);
  if (type == "BPE")
    spec.model = read_byte_pieces(root, value.at("model"));
  else if (type == "WordPiece")
    spec.model = read_word_pieces(root, value.at("model"));
  else
    fail("{}: model.type is {}, expected BPE or WordPiece", where, excerpt(type));
  lists.check(where);
  spec.pieces = lists.take_pieces();
  if (auto* bytes = std::get_if<BytePieces>(&spec.model)) bytes->merges = lists.take_merges();
  if (root.find("added_tokens"))
    for (const json& token : root.array("added_tokens"))
      spec.added.push_back(read_added(token, fmt::format("{}[{}]", root.at("added_tokens"), spec.added.size())));
  read_post_processor(root.find("post_processor"), root.at("post_processor"), spec);
  if (std::holds_alternative<BytePieces>(spec.model)) require_bytes(value.at("model"), spec, where);
  return spec;
}

}  // namespace qkv
