#include "convert/export/encoder_tokenizer_out.h"

#include <nlohmann/json.hpp>

#include "convert/export/pieces_out.h"
#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

using nlohmann::json;

// Returns the first of these tokens that the vocabulary has.
EncoderSpecials::Token first_of(const TextCodec& codec, std::initializer_list<std::string> spellings) {
  for (const std::string& text : spellings)
    if (const auto id = text.empty() ? std::nullopt : codec.id(text)) return {text, *id};
  return {};
}

// The tokens around a text, and around and between the texts of a pair.
json template_of(const EncoderSpecials& specials, const EncoderPairs& pairs) {
  const int second = pairs.types ? 1 : 0;
  const auto add = [](json& parts, const EncoderSpecials::Token& t, int type) {
    if (t.id >= 0) parts.push_back({{"SpecialToken", {{"id", t.text}, {"type_id", type}}}});
  };
  const auto text = [](const char* id, int type) -> json { return {{"Sequence", {{"id", id}, {"type_id", type}}}}; };
  json single = json::array();
  add(single, specials.start, 0);
  single.push_back(text("A", 0));
  add(single, specials.end, 0);
  json pair = single;
  for (int64_t i = 1; i < pairs.separators; i++) add(pair, specials.end, 0);
  pair.push_back(text("B", second));
  add(pair, specials.end, second);
  json tokens = json::object();
  for (const EncoderSpecials::Token* t : {&specials.start, &specials.end})
    if (t->id >= 0) tokens[t->text] = {{"id", t->text}, {"ids", {t->id}}, {"tokens", {t->text}}};
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
}

}  // namespace

EncoderSpecials specials_of(const EncoderRun& run, const std::string& where) {
  const EmbeddingConfig& e = run.embedding;
  const TextUnit unit = run.codec.unit();
  if (unit != TextUnit::pieces && !has_tokenizer_json(unit))
    fail("{}: unit must be pieces, byte_pieces or word_pieces to export an embedder (is {})", where, name_of(unit));
  for (const auto& [field, token] : {std::pair{"start", &e.start}, {"end", &e.end}})
    if (token->empty() && run.config.has_encoder())
      fail("{}: {} must be a token to export an encoder (is empty)", where, field);
  EncoderSpecials specials;
  specials.start = first_of(run.codec, {e.start});
  specials.end = first_of(run.codec, {e.end});
  specials.unknown = first_of(run.codec, {e.unknown, "[UNK]", "<unk>"});
  specials.padding = first_of(run.codec, {"[PAD]", "<pad>", e.end, e.start, specials.unknown.text});
  specials.mask = first_of(run.codec, {"<mask>", "[MASK]"});
  return specials;
}

std::string encoder_tokenizer_json(const EncoderRun& run, const EncoderSpecials& specials, const EncoderPairs& pairs,
                                   const RunDirectory& directory) {
  const bool has_pieces = run.codec.unit() == TextUnit::pieces;
  json file = json::parse(
      to_json(has_pieces ? spec_of_pieces(run, specials, directory) : run.codec.hugging_face_tokenizer().spec()));
  json changes = text_changes(run.embedding);
  if (!has_pieces && !changes.empty()) {
    if (const json& own = file["normalizer"]; !own.is_null()) changes.push_back(own);
    file["normalizer"] = {{"type", "Sequence"}, {"normalizers", changes}};
  }
  file["post_processor"] = template_of(specials, pairs);
  return file.dump(0) + "\n";
}

void write_encoder_tokenizer_config(const std::string& directory, const EncoderSpecials& specials,
                                    const EncoderPairs& pairs, int64_t max_length) {
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"model_max_length", max_length},
                 {"clean_up_tokenization_spaces", false},
                 {"model_input_names", {"input_ids", "attention_mask"}}};
  if (pairs.types) config["model_input_names"].push_back("token_type_ids");
  const auto put = [&](const char* name, const EncoderSpecials::Token& token) {
    if (token.id >= 0) config[name] = token.text;
  };
  put("cls_token", specials.start);
  put("bos_token", specials.start);
  put("sep_token", specials.end);
  put("eos_token", specials.end);
  put("unk_token", specials.unknown);
  put("pad_token", specials.padding);
  put("mask_token", specials.mask);
  write_file_atomic(directory + "/tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace qkv
