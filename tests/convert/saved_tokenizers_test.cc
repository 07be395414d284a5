// Tokenizers as transformers 4 and 5 save them (tests/golden/saved/make.py): each class gives the ids of the library.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;
using Ids = std::vector<int32_t>;

const std::string kSaved = QKV_GOLDEN_DIR "/saved/";

std::vector<std::string> saved_directories() {
  std::vector<std::string> names;
  for (const char* version : {"v4", "v5"})
    for (const auto& entry : std::filesystem::directory_iterator(kSaved + version))
      names.push_back(std::string(version) + "/" + entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// The text of a directory with a config.json and a tokenizer.
ModelText read_text(const std::string& path) {
  const ModelFiles files = ModelFiles::of_directory(path);
  const Settings config(files.open_small("config.json")->text(), files.path("config.json"));
  const Architecture& architecture = architecture_of(config);
  const ModelConfig model = read_config(architecture, config);
  return architecture.text({files, config, model, ImportOptions()});
}

Ids encode(const ModelText& text, const std::string& line) {
  if (const auto* translator = std::get_if<TranslatorText>(&text)) return translator->tokenizers.source.encode(line);
  if (const auto* language = std::get_if<LanguageText>(&text)) return language->codec.encode(line, "text");
  return std::get<EncoderText>(text).codec.encode(line, "text");
}

class SavedTokenizers : public ::testing::TestWithParam<std::string> {};

TEST_P(SavedTokenizers, GiveTheIdsOfTheLibrary) {
  const std::string path = kSaved + GetParam();
  const ModelText text = read_text(path);
  const bool has_library = std::filesystem::exists(path + "/tokenizer.json");
  const json expected = json::parse(testing::slurp(path + "/expected.json"));
  ASSERT_GE(expected.size(), 4u);
  for (const auto& [line, ids] : expected.items()) {
    if (!has_library && line.find('<') != line.npos) continue;  // special tokens, which the slow tokenizer finds
    EXPECT_EQ(encode(text, line), ids.get<Ids>()) << line;
  }
}

TEST_P(SavedTokenizers, OfTranslatorsHaveTheirLanguages) {
  const ModelText text = read_text(kSaved + GetParam());
  const auto* translator = std::get_if<TranslatorText>(&text);
  if (!translator || GetParam().ends_with("t5") || GetParam().ends_with("pegasus")) GTEST_SKIP() << "not of this model";
  const std::vector<std::string>& languages = translator->translation.languages;
  EXPECT_EQ(languages.size(), GetParam().ends_with("mbart")     ? 25u
                              : GetParam().ends_with("mbart50") ? 52u
                              : GetParam().ends_with("nllb")    ? 3u
                                                                : 100u);
}

INSTANTIATE_TEST_SUITE_P(All, SavedTokenizers, ::testing::ValuesIn(saved_directories()), [](const auto& directory) {
  std::string name = directory.param;
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '-'; }, '_');
  return name;
});

// bart-large-cnn has no row for <mask>, T5 more rows than tokens.
TEST(RowsOfEmbeddings, MayBeFewerThanAddedTokensOrMoreThanTokens) {
  const std::string t5 = kSaved + "v5/t5";
  const Tokenizer own = std::get<TranslatorText>(read_text(t5)).tokenizers.target;
  const auto size = [&](int64_t rows) { return own.fitted(rows, t5).size(); };
  const HuggingFaceTokenizer library = *read_library_tokenizer(ModelFiles::of_directory(t5));
  const int64_t tokens = library.size();
  ASSERT_EQ(library.piece(static_cast<int32_t>(tokens) - 1), "<extra_id_0>");
  EXPECT_EQ(size(tokens), tokens);
  EXPECT_EQ(size(tokens + 700), tokens + 700);
  EXPECT_EQ(size(tokens - 1), tokens - 1);
  const Tokenizer more = own.fitted(tokens + 700, t5);
  Ids ids = more.encode("the dog");
  const std::string text = more.decode(ids);
  ids.insert(ids.begin() + 1, static_cast<int32_t>(tokens) + 699);
  EXPECT_EQ(more.decode(ids), text);
  EXPECT_EQ(more.piece(ids[1]), "");
  const Tokenizer fewer = own.fitted(tokens - 1, t5);
  EXPECT_EQ(more.encode("<extra_id_0>"), Ids{static_cast<int32_t>(tokens) - 1});
  EXPECT_GT(fewer.encode("<extra_id_0>").size(), 1u);
  EXPECT_EQ(error_of([&] { size(100); }), t5 + ": must have at most 100 pieces, one for each embedding (has 150)");
  EXPECT_NE(error_of([&] { size(tokens + 5000); }).find("or at most 4096 fewer"), std::string::npos);
}

}  // namespace
}  // namespace qkv
