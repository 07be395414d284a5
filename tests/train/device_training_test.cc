// Training on a device, through the host device: losses are those of the CPU, and a resumed run has the same bytes as
// an uninterrupted run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/arena.h"
#include "device/accelerator.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/train/training_cases.h"
#include "train/engine/gradient_engine.h"
#include "train/fit_to_limits.h"
#include "train/loop/dry_run.h"
#include "train/tasks/task.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_same_run;
using testing::slurp;
using testing::steps_of;
using testing::TempDir;
using testing::TrainingCase;

class DeviceTrainingTest : public ::testing::Test {
 protected:
  DeviceTrainingTest() { ::setenv("QKV_DEVICE", QKV_HOST_DEVICE, 1); }
  ~DeviceTrainingTest() override { ::unsetenv("QKV_DEVICE"); }

  std::vector<TrainingCase> cases() const {
    return {testing::translation_case(directory_), testing::recommendation_case(directory_, false),
            testing::language_case(directory_), testing::encoder_case(directory_)};
  }
  std::string error_of_training(const std::string& json) const {
    const TrainingCase c = testing::language_case(directory_);
    return error_of([&] { c.train(json, directory_ / "refused", {}); });
  }

  static std::vector<std::string> messages_of(const TrainingCase& c, const std::string& json, const std::string& run) {
    std::vector<std::string> lines;
    TrainingObserver observer;
    observer.on_message = [&](const std::string& line) { lines.push_back(line); };
    EXPECT_TRUE(c.train(json, run, observer));
    return lines;
  }

  TempDir directory_;
};

// The error of a loss has two parts. A pass rounds (tests/device/transformer_test.cc). And Adam moves a weight by about
// the learning rate η, however small its gradient is, so that where a gradient is nothing but rounding two runs may
// move apart by 2 η in each of s steps. The loss then differs by at most 2 η s √P |gradient|, for P weights.
//
// Only translators have dropout here: small models of the others compute slices of a batch on the CPU, each with its
// own masks (model/replicas.h).
TEST_F(DeviceTrainingTest, HasTheLossesOfTheCpuInFloat32) {
  constexpr double kRate = 1e-6, kParameters = 1e4, kRounding = 14 * 2 * 5 * 4 * 0x1p-24;
  for (const TrainingCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const std::string dropout = c.name == "translate" ? "0.2" : "0";
    const std::string json = fmt::format(
        R"("learning_rate": {}, "max_steps": 8, "precision": "float32", "dropout": {}, "ffn_dropout": 0, "attention_dropout": {})",
        kRate, dropout, dropout);
    const auto host = steps_of(c, "{" + json + "}", directory_ / c.name + "-host");
    const auto device = steps_of(c, "{" + json + R"(, "device": "cuda"})", directory_ / c.name + "-device");
    ASSERT_EQ(host.size(), 8u);
    ASSERT_EQ(device.size(), 8u);
    for (size_t s = 0; s < 8; s++) {
      const double drift = 2 * kRate * static_cast<double>(s) * std::sqrt(kParameters) * host[s].gradient_norm;
      EXPECT_NEAR(device[s].loss, host[s].loss, kRounding * host[s].loss + drift) << s;
      EXPECT_NEAR(device[s].nll, host[s].nll, kRounding * host[s].nll + drift) << s;
      EXPECT_EQ(device[s].target_tokens, host[s].target_tokens);
    }
    EXPECT_NEAR(device[0].gradient_norm, host[0].gradient_norm, kRounding * host[0].gradient_norm);
  }
}

TEST_F(DeviceTrainingTest, ResumedHasTheBytesOfARunThatWasNotInterrupted) {
  for (const TrainingCase& c : cases())
    for (const char* precision : {"float32", "bfloat16"}) {
      SCOPED_TRACE(c.name + " " + precision);
      const std::string json = fmt::format(
          R"({{"device": "cuda", "precision": "{}", "max_steps": 7, "eval_every": 4, "average": 0}})", precision);
      const std::string whole = directory_ / fmt::format("{}-{}", c.name, precision), parts = whole + "-parts";
      const auto steps = steps_of(c, json, whole);
      if (c.name == "recommend") {
        EXPECT_TRUE(std::isfinite(steps.back().loss));  // the log is random
      } else {
        EXPECT_LT(steps.back().loss, steps.front().loss);
      }
      for (const size_t stop : {1, 3, 0}) steps_of(c, json, parts, stop);
      expect_same_run(whole, parts);
    }
}

// The duration of a step, from which the number of steps follows, is that on the device.
TEST_F(DeviceTrainingTest, FitsALimitOfTime) {
  testing::language_case(directory_);  // writes the text
  LanguageRecipe recipe = language_preset("lm-small");
  merge_recipe_json(recipe, R"({"d_model": 16, "heads": 2, "ffn": 16, "decoder_layers": 1, "max_length": 16,
      "batch_tokens": 64, "eval_every": 0, "device": "cuda", "max_minutes": 0.01})",
                    "");
  recipe.fit = true;
  std::vector<std::string> lines;
  TrainingObserver observer;
  observer.on_message = [&](const std::string& line) { lines.push_back(line); };
  EXPECT_TRUE(train_language_model({{directory_ / "text.txt"}}, recipe, directory_ / "run", observer));
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& l) {
    return l.find("max_minutes 0.01 (about ") != std::string::npos;
  })) << fmt::format("{}", fmt::join(lines, "\n"));
}

// A task whose batches are a few tokens, and which calls `on_next` before each.
class FewTokens : public Task {
 public:
  explicit FewTokens(std::function<void()> on_next) : on_next_(std::move(on_next)) {
    batch_.target.append(std::vector<int32_t>{1, 2, 3});
    batch_.labels = {2, 3, 1};
  }
  std::string fingerprint() const override { return ""; }
  void partition(const RankPartition&) override {}
  bool seek(const StreamPosition&) override { return true; }
  const StreamPosition& position() const override { return position_; }
  void next() override { on_next_(); }
  void skip() override {}
  double part_of_epoch() const override { return 0; }
  double batches_per_epoch() const override { return 1; }
  std::string summary() const override { return ""; }
  Loss loss_and_gradient(BatchGradients& gradients, Context& c) override {
    return gradients.loss_and_gradient(batch_, Objective{}, c);
  }
  std::string places(const StreamPosition&, TokenSide, std::span<const int64_t>) override { return ""; }
  DevScore evaluate(const Transformer<float>&, Arena&) override { return {}; }
  Metric metric() const override { return {}; }
  void dry_run(BatchGradients&, const Transformer<float>&, Arena&) override {}

 private:
  std::function<void()> on_next_;
  Batch batch_;
  StreamPosition position_;
};

TEST_F(DeviceTrainingTest, TheTimeOfAStepIncludesTheCommandsOfTheDevice) {
  static int waits;
  static const qkv_device& plugin = load_device(QKV_HOST_DEVICE);
  qkv_device table = plugin;
  table.synchronize = [] {
    waits++;
    return plugin.synchronize();
  };
  const Accelerator device(table);
  LanguageRecipe recipe = language_preset("lm-small");
  merge_recipe_json(recipe, testing::kSmallRecipe, "");
  recipe.model.target_vocab = 8;
  recipe.training.device = ComputeDevice::cuda;
  recipe.training.max_minutes = 10;
  std::vector<int> before;
  FewTokens task([&] { before.push_back(waits); });
  EXPECT_GT(seconds_of_step(recipe, task, 1), 0);
  ASSERT_GE(before.size(), 2u);
  for (size_t i = 1; i < before.size(); i++) EXPECT_EQ(before[i], before[i - 1] + 1);
}

TEST_F(DeviceTrainingTest, FrozenParametersStay) {
  const TrainingCase c = testing::translation_case(directory_);
  const std::string first = directory_ / "first";
  steps_of(c, R"({"device": "cuda", "max_steps": 2, "freeze": ["encoder", "embeddings"]})", first);
  steps_of(c, R"({"device": "cpu", "max_steps": 2, "precision": "float32", "freeze": ["encoder", "embeddings"],
               "learning_rate": 0})",
           directory_ / "still");
  const auto frozen = [&](const std::string& run) {
    const std::string file = slurp(run + "/model.safetensors");
    const size_t header = 8 + static_cast<size_t>(static_cast<uint8_t>(file[0])) +
                          256 * static_cast<size_t>(static_cast<uint8_t>(file[1]));
    const auto at = nlohmann::json::parse(file.substr(8, header - 8)).at("embedding.weight").at("data_offsets");
    return file.substr(header + at[0].get<size_t>(), at[1].get<size_t>() - at[0].get<size_t>());
  };
  EXPECT_TRUE(frozen(first) == frozen(directory_ / "still"));
}

TEST_F(DeviceTrainingTest, DeviceAndPrecisionAreRecorded) {
  const TrainingCase c = testing::language_case(directory_);
  const std::string run = directory_ / "run";
  steps_of(c, R"({"device": "auto", "max_steps": 2})", run, 1);
  const auto training = nlohmann::json::parse(slurp(run + "/training.json"));
  EXPECT_EQ(training.at("device"), "cuda");
  EXPECT_EQ(training.at("precision"), "bfloat16");
  steps_of(c, R"({"device": "auto", "max_steps": 2})", run);  // where it began
}

// Where it is trained comes first: a precision follows from it, and a device need not exist.
TEST_F(DeviceTrainingTest, ResumedElsewhereIsRefused) {
  const TrainingCase c = testing::language_case(directory_);
  const std::string on_device = directory_ / "device", on_host = directory_ / "host";
  steps_of(c, R"({"device": "cuda", "max_steps": 1})", on_device);
  for (const char* json : {R"({"max_steps": 2})", R"({"precision": "bfloat16", "max_steps": 2})"})
    EXPECT_EQ(
        error_of([&] { c.train(json, on_device, {}); }),
        on_device +
            ": device was cuda when this run was started and is now cpu; use the same value or another directory");
  steps_of(c, R"({"max_steps": 1})", on_host);
  ::setenv("QKV_DEVICE", "/nowhere/libqkv_cuda.so", 1);
  EXPECT_EQ(
      error_of([&] { c.train(R"({"device": "cuda", "max_steps": 2})", on_host, {}); }),
      on_host + ": device was cpu when this run was started and is now cuda; use the same value or another directory");
}

TEST_F(DeviceTrainingTest, ReportsItsMemoryAndRecordsTheDevice) {
  const std::string run = directory_ / "run";
  const std::vector<std::string> lines =
      messages_of(testing::language_case(directory_), R"({"device": "cuda", "max_steps": 1})", run);
  const auto begins_with = [&](const std::string& text) {
    return std::ranges::count_if(lines, [&](const std::string& line) { return line.starts_with(text); });
  };
  EXPECT_EQ(begins_with("memory: "), 1);
  EXPECT_EQ(begins_with("memory of host device: "), 1);
  const std::string metrics = slurp(run + "/metrics.jsonl");
  const auto record = nlohmann::json::parse(metrics.substr(0, metrics.find('\n')));
  EXPECT_EQ(record.at("step"), 0);
  EXPECT_EQ(record.at("device"), nlohmann::json({{"name", "host device"}, {"plugin", "host device"}}));
  steps_of(testing::language_case(directory_), R"({"device": "cuda", "max_steps": 2})", run);  // also reads them
}

// A caller in C++ that assigns a precision adds its name, as the functions that set options do.
TEST_F(DeviceTrainingTest, Float32IsKeptIfItIsGiven) {
  testing::language_case(directory_);  // writes the text
  LanguageRecipe recipe = language_preset("lm-small");
  merge_recipe_json(recipe, testing::kSmallRecipe, "");
  recipe.training.schedule = Schedule::constant;
  recipe.training.max_steps = 1;
  recipe.training.device = ComputeDevice::cuda;
  for (const bool given : {false, true}) {
    if (given) recipe.given.insert("precision");
    const std::string run = directory_ / fmt::format("given-{}", given);
    train_language_model({{directory_ / "text.txt"}}, recipe, run, {});
    EXPECT_EQ(nlohmann::json::parse(slurp(run + "/training.json")).at("precision"), given ? "float32" : "bfloat16");
  }
}

TEST_F(DeviceTrainingTest, AStepThatDoesNotFitNamesTheDevice) {
  qkv_device table = load_device(QKV_HOST_DEVICE);
  table.commit = [](void*, size_t, size_t) { return -1; };
  table.error = [] { return "out of memory"; };
  const Accelerator device(table);
  Arena arena;
  EXPECT_EQ(error_of([&] { rehearse_within_memory(0, 64, [&] { arena.take<Device<float>>(1); }); }),
            "host device: cannot take 32 MiB of memory: out of memory; a step has 64 tokens (batch_tokens)");
}

TEST_F(DeviceTrainingTest, AutoIsTheCpuWithoutAPlugin) {
  ::setenv("QKV_DEVICE", "/nowhere/libqkv_cuda.so", 1);
  const std::string run = directory_ / "run";
  const std::vector<std::string> lines =
      messages_of(testing::language_case(directory_), R"({"device": "auto", "max_steps": 1})", run);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front(), "device: cpu, because the plugin /nowhere/libqkv_cuda.so does not exist");
  const auto training = nlohmann::json::parse(slurp(run + "/training.json"));
  EXPECT_EQ(training.at("device"), "cpu");
  EXPECT_EQ(training.at("precision"), "float32");
  EXPECT_EQ(error_of_training(R"({"device": "cuda"})"),
            "device cuda: the plugin /nowhere/libqkv_cuda.so does not exist; use device cpu, or set QKV_DEVICE to the "
            "path of a device plugin");
}

TEST_F(DeviceTrainingTest, AutoReportsAPluginThatCannotBeUsed) {
  const std::string plugin = directory_ / "libqkv_cuda.so";
  testing::spill(plugin, "no library");
  ::setenv("QKV_DEVICE", plugin.c_str(), 1);
  const std::vector<std::string> lines =
      messages_of(testing::language_case(directory_), R"({"device": "auto", "max_steps": 1})", directory_ / "run");
  ASSERT_FALSE(lines.empty());
  testing::expect_contains(lines.front(), "device: cpu, because " + plugin + ": the device plugin cannot be loaded: ");
}

TEST_F(DeviceTrainingTest, RefusesWhatOnlyTheCpuTrains) {
  EXPECT_EQ(error_of_training(R"({"device": "cuda", "moments": "int8"})"),
            "moments must be float32 on a device (is int8)");
  EXPECT_EQ(error_of_training(R"({"device": "cuda", "precision": "int8"})"),
            "precision must be float32 or bfloat16 on a device (is int8)");
  EXPECT_EQ(error_of_training(R"({"device": "cuda", "shards": 2})"), "shards must be 1 on a device (is 2)");
  EXPECT_EQ(error_of_training(R"({"precision": "bfloat16"})"), "precision bfloat16 requires a device (device is cpu)");
  const TrainingCase coloured = testing::recommendation_case(directory_);
  EXPECT_EQ(error_of([&] { coloured.train(R"({"device": "cuda"})", directory_ / "refused", {}); }),
            "item features cannot be trained on a device");
  const TrainingCase plain = testing::recommendation_case(directory_, false);
  EXPECT_EQ(error_of([&] {
              plain.train(R"({"device": "cuda", "sparse_updates": true, "loss": "bce", "weight_decay": 0})",
                          directory_ / "refused", {});
            }),
            "sparse_updates must be off on a device");
  testing::translation_case(directory_);  // writes the text
  TranslationRecipe recipe = translation_preset("tiny");
  for (const ComputeDevice device : {ComputeDevice::cuda, ComputeDevice::automatic}) {
    recipe.training.device = device;
    EXPECT_EQ(
        error_of([&] {
          train_translator(
              {{directory_ / "train.a", directory_ / "train.b"}, {directory_ / "dev.a", directory_ / "dev.b"}, "", ""},
              recipe, directory_ / "refused", {}, int64_t{1} << 20);
        }),
        "training: memory requires device = cpu");
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "refused"));
}

}  // namespace
}  // namespace qkv
