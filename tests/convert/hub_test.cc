#include "convert/hub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "convert/hub/repository.h"
#include "core/fail.h"
#include "qkv/import.h"
#include "tests/support/errors.h"
#include "tests/support/golden_models.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using Names = std::vector<std::string>;

TEST(HubFiles, PrefersSafetensorsAndLeavesOutWhatIsNotRead) {
  const HubFiles chosen = choose_files(
      {".gitattributes", "README.md", "config.json", "generation_config.json", "model.safetensors", "onnx/model.onnx",
       "pytorch_model.bin", "source.spm", "target.spm", "tf_model.h5", "tokenizer_config.json", "vocab.json"},
      "hf:a/b");
  EXPECT_EQ(chosen.layout, HubLayout::transformers);
  EXPECT_EQ(chosen.names, (Names{"config.json", "generation_config.json", "tokenizer_config.json", "vocab.json",
                                 "source.spm", "target.spm", "model.safetensors"}));
}

TEST(HubFiles, TakesChatTemplates) {
  const HubFiles chosen =
      choose_files({"additional_chat_templates/rag.jinja", "additional_chat_templates/old/rag.jinja",
                    "chat_template.jinja", "config.json", "model.safetensors", "other/rag.jinja", "rag.jinja"},
                   "hf:a/b");
  EXPECT_EQ(chosen.names,
            (Names{"config.json", "chat_template.jinja", "additional_chat_templates/rag.jinja", "model.safetensors"}));
}

TEST(HubFiles, TakesTheWeightsThatAreThere) {
  EXPECT_EQ(choose_files({"config.json", "pytorch_model.bin"}, "x").names.back(), "pytorch_model.bin");
  EXPECT_EQ(
      choose_files({"config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json"}, "x").names,
      (Names{"config.json", "model.safetensors.index.json"}));
  const HubFiles converted = choose_files({"config.json", "model.bin", "shared_vocabulary.json"}, "x");
  EXPECT_EQ(converted.layout, HubLayout::directory);
  EXPECT_EQ(converted.names, (Names{"config.json", "shared_vocabulary.json", "model.bin"}));
  const HubFiles single = choose_files({"README.md", "config.json", "tiny-q8_0.gguf"}, "x");
  EXPECT_EQ(single.layout, HubLayout::file);
  EXPECT_EQ(single.names, Names{"tiny-q8_0.gguf"});
}

TEST(HubFiles, AsksForTheNameOfOneOfSeveralModels) {
  EXPECT_EQ(error_of([] {
              choose_files({"a.gguf", "b.gguf", "x/c.gguf"}, "hf:a/b");
            }),
            "hf:a/b: has 2 models: add the name of one, as in hf:a/b/a.gguf (has a.gguf, b.gguf)");
}

TEST(HubFiles, AreNamedByIndexAndModules) {
  const Names files = {"1_Pooling/config.json",
                       "2_Dense/config.json",
                       "2_Dense/model.safetensors",
                       "2_Dense/pytorch_model.bin",
                       "3_Dense/pytorch_model.bin",
                       "a.safetensors",
                       "b.safetensors"};
  EXPECT_TRUE(names_files("model.safetensors.index.json"));
  EXPECT_TRUE(names_files("modules.json"));
  EXPECT_FALSE(names_files("config.json"));
  const auto read = [&](const char* file, const char* text) { return files_named_in(file, text, files, "w"); };
  EXPECT_EQ(read("model.safetensors.index.json",
                 R"({"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "b.safetensors"}})"),
            (Names{"a.safetensors", "b.safetensors"}));
  EXPECT_EQ(read("modules.json", R"([{"path": ""}, {"path": "1_Pooling"}, {"path": "../../etc"}, {"path": 3}, 4])"),
            Names{"1_Pooling/config.json"});
  EXPECT_EQ(read("modules.json", R"([{"path": ""}, {"path": "2_Dense"}, {"path": "3_Dense"}])"),
            (Names{"2_Dense/config.json", "2_Dense/model.safetensors", "3_Dense/pytorch_model.bin"}));
  for (const char* text : {"[]", "{}", R"({"weight_map": 1})"})
    EXPECT_EQ(error_of([&] { read("model.safetensors.index.json", text); }), "w: weight_map must be an object");
  for (const char* name : {"\"../a.safetensors\"", "\"c.safetensors\"", "5"})
    EXPECT_NE(error_of([&] {
                read("model.safetensors.index.json", fmt::format(R"({{"weight_map": {{"x": {}}}}})", name).c_str());
              }).find("must be in a file of the repository"),
              std::string::npos);
}

// Copies the files that would be downloaded, and returns their names.
Names copy_chosen(const std::string& from, const std::string& to) {
  Names files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(from))
    if (entry.is_regular_file()) files.push_back(std::filesystem::relative(entry.path(), from));
  std::ranges::sort(files);
  HubFiles chosen = choose_files(files, "x");
  for (size_t i = 0; i < chosen.names.size(); i++) {
    const std::string name = chosen.names[i];
    std::filesystem::create_directories(std::filesystem::path(to + "/" + name).parent_path());
    std::filesystem::copy_file(from + "/" + name, to + "/" + name);
    if (!names_files(name)) continue;
    for (const std::string& other : files_named_in(name, testing::slurp(from + "/" + name), files, name))
      if (std::ranges::find(chosen.names, other) == chosen.names.end()) chosen.names.push_back(other);
  }
  return chosen.names;
}

TEST(HubFiles, AreEnoughForEveryGoldenModel) {
  for (const std::string& golden : testing::golden_models()) {
    const testing::TempDir directory;
    testing::copy_golden_model(golden, directory / "model");
    copy_chosen(directory / "model", directory / "chosen");
    const ImportOptions options = testing::golden_options(golden);
    import_model(directory / "model", directory / "wanted", options);
    import_model(directory / "chosen", directory / "found", options);
    EXPECT_TRUE(testing::same_files(directory / "wanted", directory / "found")) << golden;
  }
}

TEST(HubFiles, AreEnoughForMarian) {
  for (const char* name : {"spm", "tied"}) {
    const testing::TempDir directory;
    const std::string golden = QKV_GOLDEN_DIR "/marian/" + std::string(name);
    EXPECT_EQ(copy_chosen(golden, directory / "chosen").size(), 3u);
    import_model(golden, directory / "wanted");
    import_model(directory / "chosen", directory / "found");
    EXPECT_TRUE(testing::same_files(directory / "wanted", directory / "found")) << golden;
  }
  const Names files = {"README.md", "a.npz", "b.npz", "b.npz.decoder.yml", "vocab.spm"};
  EXPECT_EQ(error_of([&] { choose_files(files, "hf:a/b"); }),
            "hf:a/b: has 2 models: add the name of one, as in hf:a/b/a.npz (has a.npz, b.npz)");
  EXPECT_EQ(files_with("b.npz", files).names, (Names{"b.npz.decoder.yml", "vocab.spm", "b.npz"}));
  EXPECT_EQ(files_with("c.gguf", files).names, Names{"c.gguf"});
}

// docs/import.md lists every name of the table.
TEST(HubFiles, AreListedInTheDocumentation) {
  std::ifstream page(std::filesystem::path(QKV_GOLDEN_DIR) / "../../docs/import.md");
  std::stringstream text;
  text << page.rdbuf();
  for (const std::string& pattern : hub_patterns())
    EXPECT_NE(text.str().find("`" + pattern + "`"), std::string::npos) << pattern;
}

TEST(HubRepository, ReadsTheCommitAndTheFiles) {
  const std::string commit(40, 'a');
  const auto read = [&](const std::string& siblings) {
    return parse_repository(R"({"sha": ")" + commit + R"(", "siblings": )" + siblings + "}", "w");
  };
  const HubRepository repository = read(R"([{"rfilename": "b"}, {"rfilename": "a/c", "size": 3}])");
  EXPECT_EQ(repository.commit, commit);
  EXPECT_EQ(repository.files, (Names{"a/c", "b"}));
  EXPECT_EQ(error_of([&] { read("3"); }), "w: siblings must be an array");
  EXPECT_EQ(error_of([&] { read(R"([{"rfilename": "../x"}])"); }),
            "w: rfilename must be a path in the repository (is \"../x\")");
  EXPECT_EQ(error_of([&] { read("[3]"); }), "w: rfilename must be a path in the repository (is \"\")");
  EXPECT_EQ(error_of([&] { read(R"([{"rfilename": "x"}, {"rfilename": "x"}])"); }), "w: \"x\" is listed twice");
  EXPECT_EQ(error_of([&] { parse_repository(R"({"sha": "../x", "siblings": []})", "w"); }),
            "w: sha must be a commit of 40 hexadecimal digits (is \"../x\")");
}

}  // namespace
}  // namespace qkv
