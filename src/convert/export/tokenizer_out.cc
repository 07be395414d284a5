#include "convert/export/tokenizer_out.h"

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "io/atomic_file.h"
#include "text/pieces/byte_pairs.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr const char* kEnd = "<|endoftext|>";  // name of the token that ends a text of bytes or characters

void write_json(const std::string& path, const json& object) { write_file_atomic(path, object.dump(2) + "\n"); }

// The spellings of the pieces of one byte, by byte.
std::vector<std::string> byte_spellings() {
  std::vector<std::string> spellings;
  for (int byte = 0; byte < 256; byte++) spellings.push_back(spell_bytes(std::string(1, static_cast<char>(byte))));
  return spellings;
}

json ids_of(const std::vector<std::string>& names) {
  json ids = json::object();
  for (size_t i = 0; i < names.size(); i++) ids[names[i]] = i;
  return ids;
}

// BPE without merges: one token per piece, and one that starts and ends a text.
json pieces_alone(const std::vector<std::string>& pieces, const json& splitter, const json& decoder) {
  const size_t end = pieces.size();
  const json start = {{"SpecialToken", {{"id", kEnd}, {"type_id", 0}}}},
             text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
             second = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  const json added = {{"id", end},       {"content", kEnd},     {"single_word", false}, {"lstrip", false},
                      {"rstrip", false}, {"normalized", false}, {"special", true}};
  const json template_of_texts = {{"type", "TemplateProcessing"},
                                  {"single", {start, text}},
                                  {"pair", {start, text, second}},
                                  {"special_tokens", {{kEnd, {{"id", kEnd}, {"ids", {end}}, {"tokens", {kEnd}}}}}}};
  const json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", false},
                      {"vocab", ids_of(pieces)},
                      {"merges", json::array()}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", {added}},
          {"normalizer", nullptr},
          {"pre_tokenizer", splitter},
          {"post_processor", template_of_texts},
          {"decoder", decoder},
          {"model", model}};
}

json tokenizer_of(const TextCodec& codec) {
  if (codec.unit() == TextUnit::characters) return pieces_alone(codec.characters(), nullptr, {{"type", "Fuse"}});
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return pieces_alone(byte_spellings(), bytes, bytes);
}

// Whether the tokenizer puts a space before a text.
bool begins_with_space(const Tokenizer& tokenizer) {
  const std::vector<int32_t> ids = tokenizer.encode("x");
  return !ids.empty() && tokenizer.piece(ids.front()).starts_with("▁");
}

void check_marian(const TranslationConfig& translation, const std::string& where) {
  if (translation.lowercase) fail("{}: lowercase must be false (is true): MarianTokenizer does not change text", where);
  if (!translation.source_start.empty())
    fail("{}: source_start must be empty for MarianTokenizer (is {})", where, excerpt(translation.source_start));
  if (translation.source_end != translation.end)
    fail("{}: source_end must be {}, which MarianTokenizer appends (is {})", where, excerpt(translation.end),
         excerpt(translation.source_end));
}

}  // namespace

std::vector<std::string> pieces_by_id(const Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  for (int32_t id = 0; id < tokenizer.size(); id++) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

void write_vocabulary(const std::string& path, const std::vector<std::string>& names) {
  write_json(path, ids_of(names));
}

void write_language_tokenizer(const std::string& directory, const TextCodec& codec, const TextEnds& ends,
                              int64_t max_length) {
  json config = {{"model_max_length", max_length}, {"clean_up_tokenization_spaces", false}};
  if (codec.unit() == TextUnit::pieces) {
    const Tokenizer& tokenizer = codec.tokenizer();
    write_file_atomic(directory + "/tokenizer.model", tokenizer.serialized());
    config["tokenizer_class"] = "LlamaTokenizer";
    config["bos_token"] = tokenizer.piece(ends.start);
    config["eos_token"] = tokenizer.piece(tokenizer.end());
    if (tokenizer.unknown() >= 0) config["unk_token"] = tokenizer.piece(tokenizer.unknown());
    config["add_prefix_space"] = begins_with_space(tokenizer);
    config["add_bos_token"] = true;
    config["add_eos_token"] = false;
    config["legacy"] = false;
  } else if (has_tokenizer_json(codec.unit())) {
    write_file_atomic(directory + "/tokenizer.json", to_json(codec.hugging_face_tokenizer().spec()));
    config["tokenizer_class"] = "PreTrainedTokenizerFast";
    config["bos_token"] = codec.piece(ends.start);
    config["eos_token"] = codec.piece(ends.ends.front());
  } else {
    write_json(directory + "/tokenizer.json", tokenizer_of(codec));
    config["tokenizer_class"] = "PreTrainedTokenizerFast";
    config["bos_token"] = config["eos_token"] = kEnd;
  }
  write_json(directory + "/tokenizer_config.json", config);
}

void write_translation_tokenizers(const std::string& directory, const TokenizerPair& tokenizers,
                                  const TranslationConfig& translation, bool adds_pad, int64_t max_length,
                                  const std::string& where) {
  check_marian(translation, where);
  std::vector<std::string> source = pieces_by_id(tokenizers.source), target = pieces_by_id(tokenizers.target);
  if (adds_pad)
    for (std::vector<std::string>* pieces : {&source, &target}) pieces->push_back(kMarianPad);
  write_vocabulary(directory + "/vocab.json", source);
  if (source != target) write_vocabulary(directory + "/target_vocab.json", target);
  for (const auto& [name, side] : {std::pair{"/source.spm", &tokenizers.source}, {"/target.spm", &tokenizers.target}})
    if (!side->serialized().empty()) write_file_atomic(directory + name, side->serialized());
  write_json(directory + "/tokenizer_config.json", {{"tokenizer_class", "MarianTokenizer"},
                                                    {"separate_vocabs", source != target},
                                                    {"eos_token", translation.end},
                                                    {"unk_token", translation.unknown},
                                                    {"pad_token", adds_pad ? kMarianPad : translation.start},
                                                    {"model_max_length", max_length},
                                                    {"clean_up_tokenization_spaces", false}});
}

}  // namespace qkv
