// The tokenizers of directories in the Hugging Face layout, in each of their forms.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convert/imported_model.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;
using Ids = std::vector<int32_t>;

const std::string kGolden = QKV_GOLDEN_DIR "/tokenizers/";

// A directory with one of the golden tokenizers, as tokenizer.json or in the older files.
class LanguageTextTest : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(directory_ / file).parent_path());
    testing::spill(directory_ / file, text);
  }
  void put_json(const std::string& name) { put("tokenizer.json", testing::slurp(kGolden + name + ".json")); }
  void put_vocabulary_and_merges(const std::string& name) {
    const json file = json::parse(testing::slurp(kGolden + name + ".json"));
    json vocabulary = file["model"]["vocab"];
    for (const json& token : file["added_tokens"]) vocabulary[token["content"].get<std::string>()] = token["id"];
    put("vocab.json", vocabulary.dump());
    std::string merges = "#version: 0.2\n";
    for (const json& merge : file["model"]["merges"])
      merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
    put("merges.txt", merges);
  }
  void put_vocabulary_lines(const std::string& name) {
    const json file = json::parse(testing::slurp(kGolden + name + ".json"));
    std::vector<std::string> pieces(file["model"]["vocab"].size());
    for (const auto& [piece, id] : file["model"]["vocab"].items()) pieces[id.get<size_t>()] = piece;
    std::string lines;
    for (const std::string& piece : pieces) lines += piece + "\n";
    put("vocab.txt", lines);
  }

  LanguageText read(const std::string& config = "{}") const {
    const ModelFiles files = ModelFiles::of_directory(directory_.path());
    const Settings settings(config, "config.json");
    return read_language_text({files, settings, ModelConfig(), ImportOptions()}, "GPT2Tokenizer");
  }
  std::string error(const std::string& config = R"({"eos_token_id": 0})") const {
    std::string text = error_of([&] { read(config); });
    const size_t place = text.find(directory_.path());
    return place == std::string::npos ? text : text.erase(place, directory_.path().size() + 1);
  }
  void expect_ids_of(const std::string& name, const TextCodec& codec) const {
    for (const json& example : json::parse(testing::slurp(kGolden + name + ".ids.json")))
      EXPECT_EQ(codec.encode(example[0].get<std::string>(), "text"), example[1].get<Ids>()) << example[0];
  }

  TempDir directory_;
};

TEST_F(LanguageTextTest, ReadsTokenizerJson) {
  put_json("llama3");
  const LanguageText text = read(R"({"bos_token_id": 3, "eos_token_id": [421, 7]})");
  expect_ids_of("llama3", text.codec);
  EXPECT_EQ(text.config.unit, TextUnit::byte_pieces);
  EXPECT_EQ(text.config.start, "<|begin_of_text|>");  // the tokenizer adds it
  EXPECT_EQ(text.config.ends, (std::vector<std::string>{"<|endoftext|>", "("}));
  put("generation_config.json", R"({"eos_token_id": 420})");
  EXPECT_EQ(read(R"({"eos_token_id": 7})").config.ends, (std::vector<std::string>{"<|begin_of_text|>", "("}));
}

TEST_F(LanguageTextTest, EveryNamedEndEndsAText) {
  put_json("qwen2");
  put("generation_config.json", R"({"eos_token_id": [7]})");
  put("tokenizer_config.json", R"({"eos_token": {"content": "<think>"}})");
  EXPECT_EQ(read(R"({"eos_token_id": 420})").config.ends, (std::vector<std::string>{"(", "<|endoftext|>", "<think>"}));
  // The end of an answer, which no other file names.
  put("chat_template.jinja",
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
  EXPECT_EQ(read(R"({"eos_token_id": 420})").config.ends,
            (std::vector<std::string>{"(", "<|endoftext|>", "<think>", "<|im_end|>"}));
  put("chat_template.jinja", "{% for m in messages %}{{ m.content }} ({% endfor %}");
  EXPECT_EQ(read(R"({"eos_token_id": 420})").config.ends.size(), 3U) << "an ordinary piece ends nothing";
}

TEST_F(LanguageTextTest, ReadsChatTemplatesFromWhereverTheyAre) {
  put_json("qwen2");
  const std::string config = R"({"eos_token_id": 420})";
  EXPECT_EQ(read(config).chat, ChatFiles());
  put("chat_template.json", R"({"chat_template": "of a processor"})");
  EXPECT_EQ(read(config).chat.templates.at("default"), "of a processor");
  put("tokenizer_config.json", R"({"chat_template": "one", "bos_token": "<s>", "legacy": false,
      "added_tokens_decoder": {"423": {"content": "<think>", "rstrip": true,
      "normalized": false}, "420": {"content": "<|endoftext|>",
      "special": true}, "421": {"content": "<|im_start|>", "special": true, "lstrip": true}}})");
  json tokenizer = json::parse(testing::slurp(kGolden + "qwen2.json"));
  tokenizer["added_tokens"][1]["lstrip"] = true, tokenizer["added_tokens"][3]["rstrip"] = true;
  put("tokenizer.json", tokenizer.dump());
  const ChatFiles one = read(config).chat;
  EXPECT_EQ(one.templates, (std::map<std::string, std::string>{{"default", "one"}}));
  EXPECT_EQ(one.tokens.bos_token, "<s>");
  EXPECT_EQ(one.tokens.strip_left, std::vector<std::string>{"<|im_start|>"});
  EXPECT_EQ(one.tokens.strip_right, std::vector<std::string>{"<think>"});
  EXPECT_FALSE(one.tokens.space_after_tokens);
  put("tokenizer.json", testing::slurp(kGolden + "qwen2.json"));
  put("tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]})");
  EXPECT_EQ(read(config).chat.templates, (std::map<std::string, std::string>{{"default", "d"}, {"tool_use", "t"}}));
  put("chat_template.jinja", "file");
  put("additional_chat_templates/rag.jinja", "r");
  EXPECT_EQ(read(config).chat.templates, (std::map<std::string, std::string>{{"default", "file"}, {"rag", "r"}}));
  put("tokenizer_config.json", R"({"chat_template": 3})");
  std::filesystem::remove(directory_ / "chat_template.jinja");
  std::filesystem::remove_all(directory_ / "additional_chat_templates");
  EXPECT_EQ(error(config),
            "tokenizer_config.json: chat_template must be a text or a list of objects with name and template");
  put("tokenizer_config.json", R"({"chat_template": [{"name": "../x", "template": "t"}]})");
  EXPECT_EQ(error(config),
            "tokenizer_config.json: the name of a chat template must have 1 to 64 letters, digits, "
            "\"_\", \"-\" and \".\" (is \"../x\")");
}

TEST_F(LanguageTextTest, TheConfigurationNamesTheStartIfTheTokenizerAddsNone) {
  put_json("gpt2");
  EXPECT_EQ(read(R"({"bos_token_id": 7, "eos_token_id": 420})").config.start, "(");
  EXPECT_EQ(read(R"({"eos_token_id": 420})").config.start, "<|endoftext|>");
  EXPECT_EQ(error("{}"), "config.json: eos_token_id is missing");
  EXPECT_EQ(error(R"({"eos_token_id": 421})"), "config.json: eos_token_id must be ids below 421 (is 421)");
}

TEST_F(LanguageTextTest, VocabularyAndMergesBelongToGpt2OrTheNamedClass) {
  put_vocabulary_and_merges("gpt2");
  expect_ids_of("gpt2", read(R"({"eos_token_id": 420})").codec);
  put_vocabulary_and_merges("roberta");
  put("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": true})");
  const LanguageText text = read();
  expect_ids_of("roberta", text.codec);
  EXPECT_EQ(text.config.start, "<s>");
  EXPECT_EQ(text.config.ends, std::vector<std::string>{"</s>"});
  put("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  EXPECT_TRUE(
      error().starts_with("tokenizer_config.json: tokenizer_class must be GPT2Tokenizer, RobertaTokenizer, "
                          "BartTokenizer or Qwen2Tokenizer (is \"CLIPTokenizer\")"));
}

TEST_F(LanguageTextTest, ReadsAddedTokensNextToAVocabulary) {
  put_vocabulary_and_merges("qwen2");
  put("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": {
      "420": {"content": "<|endoftext|>", "special": true}, "421": {"content": "<|im_start|>", "special": true},
      "422": {"content": "<|im_end|>", "special": true}, "423": {"content": "<think>", "normalized": false}}})");
  expect_ids_of("qwen2", read(R"({"eos_token_id": 420})").codec);
  put("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  put("special_tokens_map.json", R"({"additional_special_tokens": ["<|im_start|>", {"content": "<|im_end|>"}]})");
  put("added_tokens.json", R"({"<think>": 423})");
  expect_ids_of("qwen2", read(R"({"eos_token_id": 420})").codec);
  put("added_tokens.json", R"({"<think>": 424})");
  EXPECT_EQ(error(), "vocab.json: pieces 423 and 424 are both \"<think>\"");
}

TEST_F(LanguageTextTest, ReadsWordPiecesFromLines) {
  put_vocabulary_lines("bert-uncased");
  LanguageText text = read();
  expect_ids_of("bert-uncased", text.codec);
  EXPECT_EQ(text.config.unit, TextUnit::word_pieces);
  EXPECT_EQ(text.config.start, "[CLS]");
  EXPECT_EQ(text.config.ends, std::vector<std::string>{"[SEP]"});
  put_vocabulary_lines("bert-cased");
  put("tokenizer_config.json", R"({"do_lower_case": false})");
  expect_ids_of("bert-cased", read().codec);
  put("tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  EXPECT_TRUE(
      error().starts_with("tokenizer_config.json: tokenizer_class must be BertTokenizer, DistilBertTokenizer, "
                          "ElectraTokenizer or MPNetTokenizer (is "));
}

TEST_F(LanguageTextTest, RefusesSettingsThatContradictTheTokenizer) {
  put_json("bert-cased");
  put("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": null})");
  read();
  put("tokenizer_config.json", R"({"do_lower_case": true})");
  EXPECT_EQ(error(), "tokenizer_config.json: do_lower_case must be false, as in tokenizer.json (is true)");
  put_json("gpt2");
  put("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_EQ(error(), "tokenizer_config.json: add_prefix_space must be false, as in tokenizer.json (is true)");
  put("tokenizer_config.json", R"({"add_bos_token": true})");
  EXPECT_EQ(error(), "tokenizer_config.json: add_bos_token must be false, as in tokenizer.json (is true)");
  put("tokenizer_config.json", R"({"added_tokens_decoder": {"421": {"content": "<x>"}}})");
  EXPECT_EQ(error(), "tokenizer_config.json: the added token 421 \"<x>\" differs from that of tokenizer.json");
}

TEST_F(LanguageTextTest, MissingFilesAndTokensAreNamed) {
  put("vocab.json", "{}");
  EXPECT_NE(error().find("expected tokenizer.json, tokenizer.model, vocab.json with merges.txt, or vocab.txt"),
            std::string::npos);
}

}  // namespace
}  // namespace qkv
