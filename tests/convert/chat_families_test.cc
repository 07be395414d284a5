// Directories of chat models as they are published and as transformers 5 saves them
// (tests/golden/chat/families/make.py): after import, their conversations have the tokens of transformers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "qkv/chat.h"
#include "qkv/import.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;
using testing::error_if_any;
using testing::slurp;
using testing::TempDir;

const std::string kFamilies = QKV_GOLDEN_DIR "/chat/families/";
const std::string kPublic = QKV_SHARED_DIR "/cases/chat-templates/templates/";

// A directory of a family, imported.
class Family {
 public:
  // layout: "published" or "v5"; "pieces" is "published" without tokenizer.json.
  Family(const std::string& name, const std::string& layout) {
    const std::string model = directory_ / "model", folder = layout == "pieces" ? "published" : layout;
    std::filesystem::copy(kFamilies + name + "/" + folder, model);
    std::filesystem::copy(kFamilies + name + "/model.safetensors", model + "/model.safetensors");
    if (layout == "pieces") std::filesystem::remove(model + "/tokenizer.json");
    import_model(model, directory_ / "run");
    generator_.emplace(directory_ / "run");
  }

  const Generator& generator() const { return *generator_; }

 private:
  TempDir directory_;
  std::optional<Generator> generator_;
};

ordered_json read_golden(const std::string& file) { return ordered_json::parse(slurp(kFamilies + file)); }

ChatOptions options_of(const ordered_json& golden) {
  ChatOptions options;
  ordered_json variables = ordered_json::object();
  for (const auto& [name, value] : golden.items()) {
    if (name == "continue_final_message")
      options.continue_final_message = value;
    else if (name == "add_generation_prompt")
      options.add_generation_prompt = value;
    else if (name == "tools")
      options.tools = value.dump();
    else
      variables[name] = value;
  }
  options.variables = variables.dump();
  return options;
}

std::vector<std::string> family_layouts() {
  std::vector<std::string> names;
  for (const char* name : {"gemma3", "llama3", "mistral", "phi3", "qwen2.5", "qwen3", "smollm2"})
    for (const char* layout : {"published", "v5", "pieces"})
      if (*layout != 'p' || layout[1] == 'u' ||
          std::filesystem::exists(kFamilies + name + "/published/tokenizer.model"))
        names.push_back(std::string(name) + "/" + layout);
  return names;
}

class ChatFamilies : public ::testing::TestWithParam<std::string> {
 protected:
  std::string name() const { return GetParam().substr(0, GetParam().find('/')); }
  std::string layout() const { return GetParam().substr(GetParam().find('/') + 1); }
};

TEST_P(ChatFamilies, GiveTheTokensOfTransformers) {
  const Family family(name(), layout());
  const Chat chat(family.generator());
  ordered_json cases = read_golden(name() + "/expected.json");
  ASSERT_EQ(cases.size(), 10U);
  if (layout() == "pieces" && std::filesystem::exists(kFamilies + name() + "/pieces.json")) {
    const ordered_json ids = read_golden(name() + "/pieces.json");
    for (size_t i = 0; i < cases.size(); i++) cases[i]["ids"] = ids.at(i);
  }
  for (const ordered_json& c : cases) {
    const std::string messages = c["messages"].dump();
    EXPECT_EQ(chat.text(messages, options_of(c["options"])), c["text"].get<std::string>());
    EXPECT_EQ(chat.prompt(messages, options_of(c["options"])), c["ids"].get<std::vector<int32_t>>()) << messages;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChatFamilies, ::testing::ValuesIn(family_layouts()), [](const auto& directory) {
  std::string name = directory.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

// FNV-1a of the decimal numbers.
std::string hash_of(const std::vector<int32_t>& ids) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : fmt::format("{}", fmt::join(ids, " ")))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

TEST(ChatFamily, GivesTheTokensOfTransformersWithPublicTemplates) {
  if (!std::filesystem::exists(kPublic)) GTEST_SKIP() << "skipped: ../shared not present";
  const ordered_json all = read_golden("public.json");
  for (const auto& [name, templates] : all.items()) {
    const Family family(name, "published");
    const ordered_json cases = read_golden(name + "/expected.json");
    for (const auto& [file, hashes] : templates.items()) {
      const Chat chat(family.generator(), slurp(kPublic + file + ".jinja"));
      ASSERT_EQ(hashes.size(), cases.size());
      for (size_t i = 0; i < cases.size(); i++) {
        const auto prompt = [&] { return chat.prompt(cases[i]["messages"].dump(), options_of(cases[i]["options"])); };
        if (hashes[i].is_null())
          EXPECT_NE(error_if_any([&] { prompt(); }), "") << name << " " << file << " " << cases[i]["messages"];
        else
          EXPECT_EQ(hash_of(prompt()), hashes[i].get<std::string>()) << name << " " << file << " " << cases[i]["text"];
      }
    }
  }
}

}  // namespace
}  // namespace qkv
