// Writing a tokenizer.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/to_size.h"
#include "text/tokenizer_json.h"

namespace qkv {
namespace {

using nlohmann::json;

json template_of(const TokenizerSpec& spec, const std::vector<std::string>& pieces) {
  const json first = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
             second = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}};
  json single = json::array(), tokens = json::object();
  const auto add = [&](const std::optional<int32_t>& id) {
    if (!id) return;
    const std::string& name = pieces[to_size(*id)];
    single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
    tokens[name] = {{"id", name}, {"ids", {*id}}, {"tokens", {name}}};
  };
  add(spec.before);
  single.push_back(first);
  add(spec.after);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", {first, second}}, {"special_tokens", tokens}};
}

json added_of(const AddedToken& token) {
  return {{"id", token.id},
          {"content", token.text},
          {"single_word", token.single_word},
          {"lstrip", token.strips_left},
          {"rstrip", token.strips_right},
          {"normalized", token.normalized},
          {"special", token.special}};
}

json byte_words_of(const BytePieces& model) {
  json steps = json::array();
  for (const WordPattern pattern : model.splits)
    if (const std::string_view expression = expression_of(pattern); expression.empty())
      steps.push_back({{"type", "Digits"}, {"individual_digits", pattern == WordPattern::digit}});
    else
      steps.push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}});
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", model.space_first},
                   {"trim_offsets", false},
                   {"use_regex", model.gpt2_words}});
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

void write(const BytePieces& model, json& root) {
  json merges = json::array();
  for (std::string_view left = model.merges; !left.empty();) {
    merges.push_back(left.substr(0, left.find('\n')));
    left.remove_prefix(std::min(left.size(), merges.back().get_ref<const std::string&>().size() + 1));
  }
  root["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", model.whole_words},
                   {"merges", std::move(merges)}};
  root["normalizer"] = model.compose ? json{{"type", "NFC"}} : json();
  root["pre_tokenizer"] = byte_words_of(model);
  root["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
}

void write(const WordPieceModel& model, json& root) {
  root["model"] = {{"type", "WordPiece"},
                   {"unk_token", model.unknown},
                   {"continuing_subword_prefix", model.continuation},
                   {"max_input_chars_per_word", model.max_characters}};
  root["normalizer"] = {{"type", "BertNormalizer"},
                        {"clean_text", model.cleaning.clean_text},
                        {"handle_chinese_chars", model.cleaning.space_chinese},
                        {"strip_accents", model.cleaning.strip_accents},
                        {"lowercase", model.cleaning.lowercase}};
  root["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  root["decoder"] = {{"type", "WordPiece"}, {"prefix", model.continuation}, {"cleanup", false}};
}

}  // namespace

std::string to_json(const TokenizerSpec& spec) {
  json root = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", json::array()}};
  std::visit([&](const auto& model) { write(model, root); }, spec.model);
  json& vocabulary = root["model"]["vocab"] = json::object();
  std::vector<std::string> pieces = spec.pieces;
  for (size_t id = 0; id < pieces.size(); id++) vocabulary[pieces[id]] = id;
  for (const AddedToken& token : spec.added) {
    root["added_tokens"].push_back(added_of(token));
    if (token.id == std::ssize(pieces)) pieces.push_back(token.text);
  }
  root["post_processor"] = template_of(spec, pieces);
  return root.dump(0) + "\n";
}

}  // namespace qkv
