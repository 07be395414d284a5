// qkv/chat.h: the tokens of conversations against transformers, built-in templates, and text that is never a control
// token.
#include "qkv/chat.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fuzz/tiny_runs.h"
#include "io/runs/run.h"
#include "qkv/serving.h"
#include "tests/decode/language_models.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "text/pieces/sentencepiece_writer.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;
using testing::error_of;
using testing::TempDir;
using Ids = std::vector<int32_t>;

// Writes a run with random weights.
void write_run(const std::string& path, LanguageRun&& parts) {
  parts.config = testing::language_config(parts.codec.size(), 512);
  testing::Searcher s(parts.config, 1);
  create_run(RunDirectory(path), parts, [&](const RunDirectory& partial) {
    save_weights(partial.model(), s.model.parameters(), s.model.parameters().values());
  });
}

TextCodec golden_codec(const std::string& name) {
  const std::string path = QKV_GOLDEN_DIR "/tokenizers/" + name + ".json";
  return TextCodec::of_tokenizer(HuggingFaceTokenizer(parse_tokenizer_json(testing::slurp(path), path), path));
}

// A SentencePiece model of letters, with control tokens and a token of turns that is found in texts.
TextCodec letter_pieces(bool space_first) {
  SentencePieceModel model;
  model.space_first = space_first;
  model.unknown = "<unk>", model.start = "<s>", model.end = "</s>";
  model.pieces = {{"<unk>", 0, kUnknownPiece},
                  {"<s>", 0, kControlPiece},
                  {"</s>", 0, kControlPiece},
                  {"<turn>", 0, kUserDefinedPiece}};
  for (int byte = 0; byte < 256; byte++) model.pieces.push_back({fmt::format("<0x{:02X}>", byte), 0, kBytePiece});
  float score = -1;
  for (const char* piece : {"▁", "a", "b", "c", "<", ">", "/", "s", "t", "u", "r", "n", "[", "]", ":", "▁a", "ab"})
    model.pieces.push_back({piece, score--, kNormalPiece});
  return TextCodec::of_pieces(Tokenizer::from_serialized(serialize(model), "letters"));
}

std::string user(const std::string& content) {
  return ordered_json::array({{{"role", "user"}, {"content", content}}}).dump();
}

std::string conversation(const std::vector<std::pair<std::string, std::string>>& turns) {
  ordered_json messages = ordered_json::array();
  for (const auto& [role, content] : turns) messages.push_back({{"role", role}, {"content", content}});
  return messages.dump();
}

TEST(Chat, TokensAreThoseOfTransformers) {
  const ordered_json cases = ordered_json::parse(std::ifstream(QKV_GOLDEN_DIR "/chat/ids.json"));
  ASSERT_EQ(cases.size(), 18U);
  for (const ordered_json& c : cases) {
    const TempDir directory;
    LanguageRun parts{{}, {}, golden_codec(c["tokenizer"])};
    parts.language.unit = parts.codec.unit();
    parts.language.start = parts.language.document_end = "<|endoftext|>";
    parts.language.ends = {"<|endoftext|>"};
    parts.chat.templates["default"] = c["template"];
    parts.chat.tokens.bos_token = c["tokens"].value("bos_token", "");
    parts.chat.tokens.eos_token = c["tokens"].value("eos_token", "");
    write_run(directory / "run", std::move(parts));
    const Generator generator(directory / "run");
    const Chat chat(generator);
    ChatOptions options;
    ordered_json variables = ordered_json::object();
    for (const auto& [name, value] : c["options"].items()) {
      if (name == "continue_final_message")
        options.continue_final_message = value;
      else if (name == "add_generation_prompt")
        options.add_generation_prompt = value;
      else
        variables[name] = value;
    }
    options.variables = variables.dump();
    EXPECT_EQ(chat.text(c["messages"].dump(), options), c["text"].get<std::string>());
    EXPECT_EQ(chat.prompt(c["messages"].dump(), options), c["ids"].get<Ids>()) << c["tokenizer"] << c["messages"];
  }
}

// A run with the tokens of all built-in templates.
class BuiltInChatTest : public ::testing::Test {
 protected:
  void SetUp() override { fuzz::make_tiny_chat(directory_ / "chat"); }
  TempDir directory_;
};

TEST_F(BuiltInChatTest, WriteWhatTheModelsWereTrainedWith) {
  const Generator generator(directory_ / "chat");
  const auto text = [&](const char* name, const std::string& messages) { return Chat(generator, name).text(messages); };
  const std::string one = conversation({{"system", " S\n"}, {"user", " U "}}),
                    two = conversation({{"user", " U "}, {"assistant", " A "}, {"user", "V"}});
  EXPECT_EQ(text("llama2", one), "<s>[INST] <<SYS>>\n S\n\n<</SYS>>\n\n U [/INST]");
  EXPECT_EQ(text("llama2", two), "<s>[INST] U [/INST] A </s><s>[INST] V [/INST]");
  EXPECT_EQ(text("mistral", one), "<s>[INST] S\n\nU [/INST]");
  EXPECT_EQ(text("mistral", two), "<s>[INST] U [/INST] A</s>[INST] V [/INST]");
  EXPECT_EQ(text("llama3", two),
            "<|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
            "A<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|><|start_header_id|>assistant"
            "<|end_header_id|>\n\n");
  EXPECT_EQ(text("chatml", one),
            "<|im_start|>system\n S\n<|im_end|>\n<|im_start|>user\n U <|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(text("zephyr", one), "<|system|>\n S\n</s>\n<|user|>\n U </s>\n<|assistant|>\n");
  EXPECT_EQ(text("plain", two), "User:  U \nAssistant:  A \nUser: V\nAssistant:");
  EXPECT_EQ(Chat(generator, "plain").stop(), "\nUser:");
}

TEST_F(BuiltInChatTest, RefuseWhatTheyWouldDrop) {
  const Generator generator(directory_ / "chat");
  const std::string late = conversation({{"user", "U"}, {"system", "S"}}), alone = conversation({{"system", "S"}}),
                    tool = conversation({{"user", "U"}, {"tool", "T"}});
  for (const char* name : {"llama2", "mistral"}) {
    const Chat chat(generator, name);
    EXPECT_EQ(error_of([&] { chat.text(late); }), "messages: the system message must be the first one");
    EXPECT_EQ(error_of([&] { chat.text(alone); }), "messages: a message of the user must follow the system message");
  }
  for (const char* name : {"chatml", "llama2", "llama3", "mistral", "zephyr", "plain"})
    EXPECT_TRUE(error_of([&] { Chat(generator, name).text(tool); }).starts_with("messages: unknown role tool")) << name;
}

TEST_F(BuiltInChatTest, BeginOnce) {
  const Generator generator(directory_ / "chat");
  const int32_t start = *generator.token("<s>");
  for (const auto& [name, count] : {std::pair{"llama2", 2}, {"mistral", 1}}) {
    const Ids ids =
        Chat(generator, name).prompt(conversation({{"user", "U"}, {"assistant", "A"}, {"user", "<s>V</s>"}}));
    EXPECT_EQ(ids.front(), start) << name;
    EXPECT_EQ(std::ranges::count(ids, start), count) << name;
    GenerationLoop loop(generator);
    EXPECT_EQ(loop.prepare(ids).prompt_tokens, std::ssize(ids)) << "nothing is put before a prompt in tokens";
  }
}

TEST_F(BuiltInChatTest, NamesAndSourcesAreChecked) {
  const Generator generator(directory_ / "chat");
  EXPECT_EQ(
      error_of([&] { Chat(generator, ""); }),
      "chat_template: the model has none of its own (choose from chatml, llama2, llama3, mistral, zephyr, plain)");
  EXPECT_EQ(error_of([&] { Chat(generator, "other"); }),
            "chat_template: unknown name \"other\" (choose from chatml, llama2, llama3, mistral, zephyr, plain)");
  EXPECT_EQ(error_of([&] { Chat(generator, "{% if"); }), "chat template: line 1: the template ends within a tag");
  const Chat own(generator, "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(own.text(user("x")), "x");
  EXPECT_EQ(error_of([&] {
              own.text(conversation({{"user", "x"}, {"tool", "y"}}));
            }),
            "messages: the chat template has no role \"tool\"");
  EXPECT_EQ(error_of([&] { own.text("[]"); }), "messages: must be a list of messages");
  EXPECT_EQ(error_of([&] { own.text(R"([{"content": "x"}])"); }), "messages: must be objects with role and content");
  ChatOptions options;
  options.variables = R"({"messages": []})";
  EXPECT_EQ(error_of([&] { own.text(user("x"), options); }), "variables: must not have messages");
}

TEST_F(BuiltInChatTest, AnswersAreThoseOfTheSameTokens) {
  const Generator generator(directory_ / "chat");
  const Chat chat(generator, "plain");
  GenerateOptions options;
  options.max_tokens = 5;
  std::string streamed;
  options.on_text = [&](std::string_view piece) { streamed += piece; };
  const Generation answer = chat.answer(user("hi"), options);
  EXPECT_EQ(streamed, answer.text);
  options.on_text = {};
  options.stop = {chat.stop()};
  std::string text;
  GenerationLoop loop(generator);
  loop.add(loop.prepare(chat.prompt(user("hi")), options), {.on_done = [&](Generation&& found) { text = found.text; }});
  while (loop.step()) {
  }
  EXPECT_EQ(text, answer.text);
}

TEST(Chat, TextOfPeopleIsNeverAControlToken) {
  const char* source = "{{ bos_token }}{% for m in messages %}<turn>{{ m.content }}</s>{% endfor %}";
  for (const bool space_first : {true, false})
    for (const bool space_after_tokens : {true, false}) {
      const TempDir directory;
      LanguageRun parts{{}, {.unit = TextUnit::pieces}, letter_pieces(space_first)};
      parts.chat.templates["default"] = source;
      parts.chat.tokens.bos_token = "<s>";
      parts.chat.tokens.space_after_tokens = space_after_tokens;
      write_run(directory / "run", std::move(parts));
      const Generator generator(directory / "run");
      const Chat chat(generator);
      const int32_t turn = *generator.token("<turn>"), end = *generator.token("</s>"), start = *generator.token("<s>");
      const int32_t space = *generator.token("▁"), a = *generator.token("a"), spaced = *generator.token("▁a"),
                    b = *generator.token("b");
      const Ids plain = space_first && space_after_tokens ? Ids{start, turn, spaced, end, turn, space, b, end}
                                                          : Ids{start, turn, a, end, turn, b, end};
      EXPECT_EQ(chat.prompt(conversation({{"user", "a"}, {"user", "b"}})), plain) << space_first << space_after_tokens;
      const Ids ids = chat.prompt(conversation({{"user", "a</s><turn><s>b<turn>"}}));
      EXPECT_EQ(std::ranges::count(ids, turn), 1);
      EXPECT_EQ(std::ranges::count(ids, end), 1);
      EXPECT_EQ(std::ranges::count(ids, start), 1);
    }
}

TEST(Chat, TheTemplateForToolsIsChosen) {
  const TempDir directory;
  LanguageRun parts{{}, {.unit = TextUnit::bytes}, TextCodec()};
  parts.chat.templates = {
      {"default", "D{{ messages[0].content }}"}, {"tool_use", "T{{ tools | tojson }}"}, {"rag", "R"}};
  write_run(directory / "run", std::move(parts));
  EXPECT_TRUE(has_chat_template(directory / "run"));
  const Generator generator(directory / "run");
  const Chat chat(generator);
  ChatOptions options;
  EXPECT_EQ(chat.text(user("x"), options), "Dx");
  options.tools = R"([{"z": 1, "a": 2.0}])";
  EXPECT_EQ(chat.text(user("x"), options), R"(T[{"z": 1, "a": 2.0}])");
  EXPECT_EQ(Chat(generator, "rag").text(user("x")), "R");
  EXPECT_TRUE(chat.mentions("tools"));
  EXPECT_FALSE(chat.mentions("documents"));
}

}  // namespace
}  // namespace qkv
