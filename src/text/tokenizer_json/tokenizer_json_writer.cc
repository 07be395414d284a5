// Writing a tokenizer.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/to_size.h"
#include "text/tokenizer_json/tokenizer_json.h"

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

json model_of(const PairsModel& model) {
  json merges = json::array();
  for (const auto& [left, right] : pairs_of(model.merges)) merges.push_back({left, right});
  const CharacterPairsOptions& options = model.options;
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", options.unknown ? json(*options.unknown) : json()},
          {"continuing_subword_prefix", options.prefix.empty() ? json() : json(options.prefix)},
          {"end_of_word_suffix", options.suffix.empty() ? json() : json(options.suffix)},
          {"fuse_unk", options.fuse_unknown},
          {"byte_fallback", options.byte_fallback},
          {"ignore_merges", options.whole_words},
          {"merges", std::move(merges)}};
}

json model_of(const UnigramModel& model) {
  return {{"type", "Unigram"},
          {"unk_id", model.unknown ? json(*model.unknown) : json()},
          {"byte_fallback", model.byte_fallback}};
}

json model_of(const LongestModel& model) {
  return {{"type", "WordPiece"},
          {"unk_token", model.unknown},
          {"continuing_subword_prefix", model.continuation},
          {"max_input_chars_per_word", model.max_characters}};
}

json model_of(const WholeWordsModel& model) { return {{"type", "WordLevel"}, {"unk_token", model.unknown}}; }

void write(const PipelineSpec& spec, json& root) {
  for (const auto& [name, part] :
       {std::pair{"normalizer", &spec.normalizer}, {"pre_tokenizer", &spec.pre_tokenizer}, {"decoder", &spec.decoder}})
    root[name] = part->empty() ? json() : json::parse(*part);
  root["model"] = std::visit([](const auto& model) { return model_of(model); }, spec.model);
}

// The scores of pieces; null where they have none.
const std::vector<double>* scores_of(const TokenizerSpec& spec) {
  const auto* pipeline = std::get_if<PipelineSpec>(&spec.model);
  const auto* unigram = pipeline ? std::get_if<UnigramModel>(&pipeline->model) : nullptr;
  return unigram ? &unigram->scores : nullptr;
}

}  // namespace

std::string to_json(const TokenizerSpec& spec) {
  json root = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", json::array()}};
  std::visit([&](const auto& model) { write(model, root); }, spec.model);
  const std::vector<double>* scores = scores_of(spec);
  json& vocabulary = root["model"]["vocab"] = scores ? json::array() : json::object();
  std::vector<std::string> pieces = spec.pieces;
  for (size_t id = 0; id < pieces.size(); id++)
    if (scores)
      vocabulary.push_back({pieces[id], (*scores)[id]});
    else
      vocabulary[pieces[id]] = id;
  for (const AddedToken& token : spec.added) {
    root["added_tokens"].push_back(added_of(token));
    if (token.id == std::ssize(pieces)) pieces.push_back(token.text);
  }
  root["post_processor"] = template_of(spec, pieces);
  return root.dump(0) + "\n";
}

}  // namespace qkv
