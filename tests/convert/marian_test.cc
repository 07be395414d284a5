// Models in Marian's format, with scores that Marian computed (tests/golden/marian/make.py), and files that are
// refused.
#include "convert/marian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "convert/formats/npz.h"
#include "convert/formats/yaml.h"
#include "io/runs/run.h"
#include "qkv/import.h"
#include "qkv/translator.h"
#include "tests/support/errors.h"
#include "tests/support/npz_writer.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::npy;
using testing::NpzWriter;
using testing::slurp;
using testing::spill;
using testing::TempDir;

const std::string kMarian = QKV_GOLDEN_DIR "/marian/";

class MarianModels : public ::testing::TestWithParam<const char*> {
 protected:
  std::string model() const { return kMarian + GetParam(); }
  std::string out() const { return directory_ / "run"; }
  json expected() const { return json::parse(slurp(model() + "/expected.json")); }

  TempDir directory_;
};

// Marian prints six digits; the scores of the file are those of float64.
TEST_P(MarianModels, HaveTheScoresOfMarian) {
  EXPECT_EQ(import_model(model(), out()).kind, "Marian");
  const Translator translator(out());
  std::vector<std::string> sources;
  std::vector<Target> targets;
  const json cases = expected();
  ASSERT_EQ(cases.size(), 12u);
  for (const json& example : cases) {
    sources.push_back(example[0]);
    targets.emplace_back(example[1].get<std::vector<std::string>>());
  }
  const std::vector<Translation> found = translator.score(sources, targets);
  for (size_t i = 0; i < cases.size(); i++) {
    double sum = 0;
    for (const double score : found[i].hypotheses[0].token_scores) sum += score;
    if (!cases[i][2]) sum -= found[i].hypotheses[0].token_scores.back();  // Marian stopped before the end token
    const double score = cases[i][3];
    EXPECT_NEAR(sum, score, 1e-5 * std::max(1.0, std::abs(score))) << cases[i][0] << " -> " << cases[i][1];
  }
}

// The four best of a beam of four. The decoder of Marian 1.12 computes models with pre-norm in another way.
TEST_P(MarianModels, GiveTheTranslationsOfMarian) {
  if (GetParam() == std::string("prenorm")) GTEST_SKIP() << "not of this model";
  import_model(model() + "/model.npz", out());
  const Translator translator(out());
  const json cases = expected();
  TranslateOptions options;
  options.beam = 4;
  options.length_penalty = 0;
  int compared = 0;
  for (size_t i = 0; i < cases.size(); i += 4) {
    if (!cases[i][2]) continue;
    compared++;
    const Translation found = translator.translate({cases[i][0].get<std::string>()}, options)[0];
    EXPECT_EQ(found.hypotheses[0].tokens, cases[i][1].get<std::vector<std::string>>()) << cases[i][0];
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, MarianModels, ::testing::Values("tied", "prenorm", "embeddings", "untied", "old", "spm"),
                         [](const auto& model) { return std::string(model.param); });

// OPUS-MT's own archives have a list of pieces, and SentencePiece models that split text into them.
TEST(Marian, ListsOfPiecesAreUsedWithSentencePieceModels) {
  const TempDir directory;
  const std::string folder = directory / "opus";
  std::filesystem::create_directory(folder);
  std::filesystem::copy(kMarian + "spm/model.npz", folder + "/opus.npz");
  spill(folder + "/opus.npz.optimizer.npz", "");
  for (const char* name : {"/source.spm", "/target.spm"})
    std::filesystem::copy(kMarian + "spm/vocab.spm", folder + name);
  const Tokenizer tokenizer = Tokenizer::load(folder + "/source.spm");
  std::string list;
  for (int32_t id = 0; id < tokenizer.size(); id++)
    list += json(tokenizer.piece(id)).dump() + ": " + std::to_string(id) + "\n";
  spill(folder + "/opus.vocab.yml", list);
  spill(folder + "/decoder.yml", "vocabs:\n  - /elsewhere/opus.vocab.yml\n  - /elsewhere/opus.vocab.yml\n");
  import_model(folder, directory / "run");
  import_model(kMarian + "spm", directory / "other");
  EXPECT_EQ(slurp(directory / "run/model.safetensors"), slurp(directory / "other/model.safetensors"));
  const auto text = [](const std::string& run) {
    return Translator(run).translate({"the dog sees the cat"})[0].text();
  };
  EXPECT_EQ(text(directory / "run"), text(directory / "other"));
}

// A copy of the model "tied" whose configuration, or whose arrays, are changed.
class MarianErrors : public ::testing::Test {
 protected:
  static std::string config() {
    const MappedFile file(kMarian + "tied/model.npz");
    const TensorView view = parse_npz(file.bytes(), "model").at("special:model.yml");
    return {reinterpret_cast<const char*>(view.data.data()), view.data.size() - 1};
  }
  std::string with_config(const std::string& text) const {
    const MappedFile file(kMarian + "tied/model.npz");
    NpzWriter npz;
    for (const auto& [name, tensor] : parse_npz(file.bytes(), "model")) {
      if (name == "special:model.yml") continue;
      std::string shape;
      for (const int64_t size : tensor.shape) shape += std::to_string(size) + ", ";
      npz.add(name + ".npy",
              npy("<f4", shape, {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()}));
    }
    npz.add("special:model.yml.npy", npy("<i1", std::to_string(text.size()) + ",", text));
    return error(npz.bytes());
  }
  // With a member of the configuration replaced, or added.
  std::string with(const std::string& name, const std::string& value) const {
    std::string text = config();
    if (const size_t at = text.find(name + ":"); at != text.npos) text.erase(at, text.find('\n', at) - at + 1);
    return with_config(text + name + ": " + value + "\n");
  }
  std::string error(const std::string& bytes) const {
    spill(directory_ / "model.npz", bytes);
    spill(directory_ / "vocab.yml", slurp(kMarian + "tied/vocab.yml"));
    const std::string text = error_of([&] { import_model(directory_ / "model.npz", directory_ / "run"); });
    EXPECT_EQ(text.find('\n'), text.npos);
    return text.substr(std::min(text.size(), directory_.path().size() + 1));
  }

  const std::string where_ = "model.npz: tensor \"special:model.yml\": ";
  TempDir directory_;
};

TEST_F(MarianErrors, UnsupportedFeaturesAreNamed) {
  EXPECT_EQ(with("type", "s2s"), where_ + "type must be transformer (is \"s2s\")");
  EXPECT_EQ(with("transformer-decoder-autoreg", "rnn"),
            where_ + "transformer-decoder-autoreg must be self-attention (is \"rnn\")");
  EXPECT_EQ(with("transformer-ffn-activation", "gelu"),
            where_ + "transformer-ffn-activation must be swish or relu (is \"gelu\")");
  EXPECT_EQ(with("transformer-ffn-depth", "3"), where_ + "transformer-ffn-depth must be 2 (is 3)");
  EXPECT_EQ(with("transformer-train-position-embeddings", "true"),
            where_ + "transformer-train-position-embeddings must be false (is true)");
  EXPECT_EQ(with("transformer-preprocess", "r"), where_ + "transformer-preprocess must be n or empty (is \"r\")");
  EXPECT_EQ(with("transformer-preprocess", "n"), where_ + "transformer-postprocess must be da (is \"dan\")");
  EXPECT_EQ(with("transformer-postprocess", "dhn"), where_ + "transformer-postprocess must be dan (is \"dhn\")");
  EXPECT_EQ(with("transformer-postprocess-top", "a"),
            where_ + "transformer-postprocess-top must be n or empty (is \"a\")");
  EXPECT_EQ(with("transformer-tied-layers", "[1, 1]"), where_ + "not supported: transformer-tied-layers");
  EXPECT_EQ(with("dim-emb", "5000"), where_ + "dim-emb must be even and between 4 and 4096 (is 5000)");
  EXPECT_EQ(with("dim-emb", "32"), "model.npz: the embeddings must have dim-emb 32 columns");
  EXPECT_EQ(with("enc-depth", "2"), "model.npz: tensor \"encoder_l2_self_Wq\" is missing");
  EXPECT_EQ(with("enc-depth", "20000"), where_ + "enc-depth must be between 1 and 1000 (is 20000)");
  EXPECT_EQ(with("dec-depth", "1").substr(0, 29), "model.npz: tensor \"decoder_l2");
}

TEST_F(MarianErrors, BrokenConfigurationsAreRefused) {
  EXPECT_EQ(with_config("- 1"), where_ + "line 1: must be a mapping");
  EXPECT_EQ(with_config("a: &x 1\nb: *x\n"), where_ + "line 2: aliases are not supported");
  EXPECT_EQ(with_config("a: 1\na: 2\n"), where_ + "line 2: the key \"a\" appears twice");
  EXPECT_EQ(with_config("a: [\n"), where_ + "line 2: not YAML: did not find expected node content");
  EXPECT_EQ(with_config("a: " + std::string(20, '[') + std::string(20, ']')),
            where_ + "line 1: must have at most 16 levels");
  EXPECT_EQ(with_config("a: 1\n--- b\n"), where_ + "line 2: must be one document");
  EXPECT_EQ(with_config("\xff"), where_ + "line 1: not valid UTF-8");
}

TEST_F(MarianErrors, BrokenArraysAreRefused) {
  const auto array = [&](const std::string& bytes, const std::string& name = "a.npy") {
    NpzWriter npz;
    npz.add(name, bytes);
    return error(npz.bytes());
  };
  EXPECT_EQ(array("x"), "model.npz: \"a.npy\": not an array of NumPy");
  EXPECT_EQ(array("x", "a.txt"), "model.npz: \"a.txt\": not an array, whose name ends with .npy");
  EXPECT_EQ(array(npy("<f4", "3,", std::string(8, 'x'))),
            "model.npz: \"a.npy\": F32 [3] does not match its 8 bytes of data");
  EXPECT_EQ(array(npy("<f4", "4294967296, 4294967296, 4294967296", "")).substr(0, 41),
            "model.npz: \"a.npy\": F32 [4294967296, 4294");
  EXPECT_EQ(array(npy("O", "3,", "")), "model.npz: \"a.npy\": type must be <f4, <f2, <f8 or an integer (is \"O\")");
  EXPECT_EQ(array(npy("<f4", "-3,", "")), "model.npz: \"a.npy\": the header is not that of an array");
  EXPECT_EQ(array(npy("<f4", "1,1,1,1,1,1,1,1,1", "")), "model.npz: \"a.npy\": must have at most 8 dimensions");
  EXPECT_EQ(array(npy("<f4", "1", "abcd", true)), "model.npz: \"a.npy\": fortran_order must be False");
  EXPECT_EQ(array(std::string("\x93NUMPY\1\0\xff\xff", 10) + "{}"),
            "model.npz: \"a.npy\": a header of 65535 bytes does not fit into its 12 bytes");
  EXPECT_EQ(array(npy("<f4", "1,", "abcd")), "model.npz: tensor \"special:model.yml\" is missing");
}

// yaml-cpp, by which Marian writes vocabularies, has fewer special characters than YAML 1.1, and longer UTF-8.
TEST(MarianVocabularies, HaveTheCharactersThatMarianWrites) {
  const auto pieces = [](const std::string& text) { return parse_yaml_vocabulary(text, "vocab.yml"); };
  for (const std::string character : {"\u0085", "\u2028", "\u2029", "\uFFFE", "\uFFFF", "\uFEFF", "\x7F", "\u0084",
                                      "\u0080", "\u009F", "\u00A0", "\u07FF", "\U000F0000", "\u00AD", "'", "🎉"})
    for (const std::string& piece : {character, "a" + character + "b", character + character}) {
      const std::string single = character == "'" ? "" : "'" + piece + "': 1\n";
      for (const std::string& line :
           {"\"" + piece + "\": 1\n", "? \"" + piece + "\"\n: 1\n", single, "x" + piece + ": 1\n"}) {
        if (line.empty()) continue;
        const std::vector<std::string> found = pieces("</s>: 0\n" + line + "\"z\": 2\n");
        EXPECT_EQ(found, (std::vector<std::string>{"</s>", line[0] == 'x' ? "x" + piece : piece, "z"})) << line;
      }
    }
  EXPECT_EQ(pieces("\"\xC1\xBF\": 0\n\xE0\x9F\xBF: 1\n'\xF0\x8F\xBF\xBF': 2\n"),
            (std::vector<std::string>{"\x7F", "\u07FF", "\uFFFF"}));
  EXPECT_EQ(pieces("\uFEFFa: 0\n\uFEFF: 1\n"), (std::vector<std::string>{"a", "\uFEFF"}));
  EXPECT_EQ(pieces("\"\\x85\\N\\u2028\\L\\x7f\\uFFFE\\U0010FFFF\": 0\n\u0085: 1\n"),
            (std::vector<std::string>{"\u0085\u0085\u2028\u2028\x7F\uFFFE\U0010FFFF", "\u0085"}));
  EXPECT_EQ(pieces("\"\\U000F0000\\U000f00010085\": 0\n\u0085: 1\n"),
            (std::vector<std::string>{"\U000F0000\U000F00010085", "\u0085"}));
  EXPECT_EQ(error_of([&] { pieces("a: 0\n\xC1\xBE: 1\n"); }), "vocab.yml: line 2: not valid UTF-8");
  EXPECT_EQ(error_of([&] { pieces("a: 0\n\"\x01\": 1\n"); }),
            "vocab.yml: line 1: not YAML: control characters are not allowed");
}

TEST_F(MarianErrors, VocabulariesMustBeThere) {
  std::filesystem::copy(kMarian + "tied/model.npz", directory_ / "model.npz");
  const auto message = [&] {
    return error_of([&] { import_model(directory_.path(), directory_ / "run"); }).substr(directory_.path().size() + 1);
  };
  EXPECT_EQ(message(),
            "model.npz: has no vocabulary: expected vocabs in model.npz.decoder.yml, decoder.yml or model.npz.yml, "
            "vocab.spm or vocab.yml, or the option source_vocabulary");
  spill(directory_ / "vocab.yml", "a: 0\nb: 0\n");
  EXPECT_EQ(message(), "vocab.yml: line 2: \"a\" and \"b\" both have the id 0");
  spill(directory_ / "vocab.yml", "a: 0\nb: 2\n");
  EXPECT_EQ(message(), "vocab.yml: no piece has the id 1");
  spill(directory_ / "vocab.yml", "a: 0\nb: x\n");
  EXPECT_EQ(message(), "vocab.yml: line 2: the id of \"b\" must be a number below 524288 (is \"x\")");
  spill(directory_ / "vocab.yml", "</s>: 0\n<unk>: 1\n");
  EXPECT_EQ(message(), "model.npz: source embeddings must match the vocabulary (are 30, the vocabulary has 2 tokens)");
  std::filesystem::copy(kMarian + "tied/model.npz", directory_ / "other.npz");
  EXPECT_NE(error_of([&] { import_model(directory_.path(), directory_ / "run"); }).find("holds 2 .npz archives"),
            std::string::npos);
}

}  // namespace
}  // namespace qkv
