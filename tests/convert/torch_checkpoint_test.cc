// Checkpoints of PyTorch: those that torch.save wrote give its tensors, as safetensors do, and hostile ones are
// refused. tests/golden/checkpoints/make.py wrote the files with torch.
#include "convert/formats/torch_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "convert/formats/shards.h"
#include "qkv/import.h"
#include "qkv/translator.h"
#include "tests/support/errors.h"
#include "tests/support/golden_models.h"
#include "tests/support/hostile_checkpoints.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::slurp;
using testing::spill;
using testing::TempDir;

using Views = std::map<std::string, TensorView>;

void expect_same_views(const Views& found, const Views& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) {
    ASSERT_TRUE(found.contains(name)) << name;
    const TensorView& other = found.at(name);
    EXPECT_EQ(describe(other.dtype, other.shape), describe(tensor.dtype, tensor.shape)) << name;
    EXPECT_TRUE(std::ranges::equal(other.data, tensor.data)) << name;
  }
}

class TorchFiles : public ::testing::TestWithParam<const char*> {};

TEST_P(TorchFiles, HoldTheTensorsThatTorchSaved) {
  const std::string folder = QKV_GOLDEN_DIR "/checkpoints/";
  expect_same_views(TorchCheckpoint::open(folder + GetParam()).views(),
                    Shards(folder + "expected.safetensors").views());
}

TEST_P(TorchFiles, ThatAreCutOrChangedAreErrorsOrTensorsOfTheFile) {
  const std::string bytes = slurp(std::string(QKV_GOLDEN_DIR "/checkpoints/") + GetParam());
  const TempDir directory;
  const std::string path = directory / "model.pt";
  const auto open = [&](const std::string& content) {
    spill(path, content);
    const std::string error = testing::error_if_any([&] {
      const TorchCheckpoint file = TorchCheckpoint::open(path);
      for (const auto& [name, tensor] : file.views()) EXPECT_LE(tensor.data.size(), content.size());
    });
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_TRUE(error.empty() || error.starts_with(path)) << error;
    return error;
  };
  for (size_t size = 0; size < bytes.size(); size += 29) EXPECT_NE(open(bytes.substr(0, size)), "") << size;
  for (size_t i = 0; i < bytes.size(); i += 17)
    for (const char change : {'\1', '\x80'}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      open(changed);
    }
}

INSTANTIATE_TEST_SUITE_P(Of, TorchFiles,
                         ::testing::Values("zip.pt", "zip-protocol4.pt", "old.pt", "old-protocol4.pt",
                                           "lightning.ckpt"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
                           return name;
                         });

// Replaces the safetensors of a directory by checkpoints of the same tensors, in several files if it had several.
void replace_by_checkpoints(const std::string& directory, bool old) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string path = entry.path(), name = entry.path().filename();
    if (name == "expected.safetensors" || !name.starts_with("model")) continue;
    std::string content;
    if (name.ends_with(".json")) {
      content = slurp(path);
      for (size_t at = 0; (at = content.find(".safetensors", at)) != std::string::npos;)
        content.replace(at, 12, ".bin");
      spill(directory + "/pytorch_model.bin.index.json", content);
    } else if (name.ends_with(".safetensors")) {
      const Safetensors file = Safetensors::open(path);
      const auto tensors = testing::pickled::tensors_of(file);
      spill(
          directory + "/" + (name == "model.safetensors" ? "pytorch_model" : name.substr(0, name.size() - 12)) + ".bin",
          old ? testing::pickled::old_checkpoint(tensors) : testing::pickled::zip_checkpoint(tensors));
    } else {
      continue;
    }
    fs::remove(path);
  }
}

TEST(TorchArchives, OfZip64AreRead) {
  namespace pickled = testing::pickled;
  const Safetensors file = Safetensors::open(QKV_GOLDEN_DIR "/checkpoints/expected.safetensors");
  const std::vector<NamedTensor> tensors = pickled::tensors_of(file);
  const std::string bytes = pickled::zip_checkpoint(tensors, pickled::zip64);
  const testing::TempFile archive("model.pt", bytes), plain("model.pt", pickled::zip_checkpoint(tensors));
  const TorchCheckpoint found = TorchCheckpoint::open(archive.path()), wanted = TorchCheckpoint::open(plain.path());
  expect_same_views(found.views(), wanted.views());
  EXPECT_EQ(found.views().size(), tensors.size());
  // A size of 2^62 bytes, in the directory and before the data.
  std::string changed = bytes;
  const std::string size = pickled::number(uint64_t{tensors.back().tensor.data.size()});
  size_t places = 0;
  for (size_t at = 0; (at = changed.find(size + size, at)) != std::string::npos; at += 16, places++)
    for (const size_t i : {at, at + 8}) changed.replace(i, 8, pickled::number(uint64_t{1} << 62));
  EXPECT_GE(places, 2u);
  const testing::TempFile broken("model.pt", changed);
  EXPECT_NE(
      testing::error_of([&] { TorchCheckpoint::open(broken.path()); }).find("of 4611686018427387904 bytes does not"),
      std::string::npos);
}

TEST(GoldenModels, HaveTheSameTensorsAsCheckpoints) {
  const std::vector<std::string> models = testing::golden_models();
  EXPECT_GE(models.size(), 15u);
  for (const std::string& model : models)
    for (const bool old : {false, true}) {
      const TempDir directory;
      fs::copy(model, directory.path(), fs::copy_options::recursive);
      replace_by_checkpoints(directory.path(), old);
      const Shards found(ModelFiles::of_directory(directory.path())), wanted(ModelFiles::of_directory(model));
      EXPECT_NE(found.path().find("/pytorch_model.bin"), std::string::npos) << found.path();
      expect_same_views(found.views(), wanted.views());
    }
}

TEST(GoldenModels, AreTheSameRunFromCheckpoints) {
  for (const std::string& golden : testing::golden_models()) {
    const TempDir directory;
    const std::string model = directory / "model";
    testing::copy_golden_model(golden, model);
    fs::remove(model + "/pytorch_model.bin");
    import_model(model, directory / "wanted", testing::golden_options(golden));
    replace_by_checkpoints(model, false);
    EXPECT_TRUE(Shards::present(ModelFiles::of_directory(model)));
    import_model(model, directory / "found", testing::golden_options(golden));
    EXPECT_TRUE(testing::same_files(directory / "wanted", directory / "found")) << golden;
  }
}

// torch.save wrote this one, with all tensors of the model: also the sinusoids, which safetensors files leave out.
TEST(GoldenModels, OpusTranslatesFromTheCheckpointOfTorch) {
  const TempDir directory;
  const std::string golden = QKV_GOLDEN_DIR "/encoder_decoders/opus", model = directory / "model";
  fs::copy(golden, model);
  fs::remove(model + "/model.safetensors");
  import_model(model, directory / "found");
  import_model(golden, directory / "wanted");
  const std::vector<std::string> lines = {"the dog runs in the park .", "a cat sees the dog ."};
  const auto translate = [&](const char* run) { return Translator(directory / run).translate(lines); };
  const std::vector<Translation> found = translate("found"), wanted = translate("wanted");
  for (size_t i = 0; i < lines.size(); i++) {
    EXPECT_EQ(found[i].hypotheses[0].tokens, wanted[i].hypotheses[0].tokens);
    EXPECT_NEAR(found[i].hypotheses[0].score, wanted[i].hypotheses[0].score, 1e-5);
  }
}

class HostileCheckpoints : public ::testing::TestWithParam<testing::HostileCheckpoint> {};

TEST_P(HostileCheckpoints, AreRefusedInOneLine) {
  const TempDir directory;
  const std::string path = directory / "model.pt";
  spill(path, GetParam().bytes);
  const std::string error = testing::error_of([&] { TorchCheckpoint::open(path); });
  EXPECT_EQ(error, path + ": " + GetParam().error);
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 1);
}

INSTANTIATE_TEST_SUITE_P(Of, HostileCheckpoints, ::testing::ValuesIn(testing::hostile_checkpoints()),
                         [](const auto& file) { return file.param.name; });

}  // namespace
}  // namespace qkv
