// config.json and the rules for changing the format: docs/run-directory.md.
#include "io/runs/run_config.h"

#include <gtest/gtest.h>

#include "qkv/system.h"
#include "qkv/training.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::spill;

// The fields without which no model is valid.
constexpr const char* kSmallest = R"("source_vocab": 9, "target_vocab": 9)";

RunConfig parse(const std::string& fields) { return parse_run_config("{" + fields + "}", "config.json"); }
// "qkv 0.1.0"
std::string own_version() { return version().substr(0, version().find(" (")); }

std::string parse_error(const std::string& fields) {
  return error_of([&] { parse(fields); });
}

TEST(RunConfigTest, StatesFormatKindAndVersion) {
  const testing::TempDir directory;
  const RunDirectory run(directory.path());
  for (const RunKind kind :
       {RunKind::translator, RunKind::language_model, RunKind::recommender, RunKind::encoder, RunKind::classifier}) {
    write_config(run, kind, testing::small_config());
    const RunConfig read = read_config(run);
    EXPECT_EQ(read.format, kRunFormat);
    EXPECT_EQ(read.kind, kind);
    EXPECT_EQ("qkv " + read.version, own_version());
    EXPECT_EQ(read.model, testing::small_config());
  }
}

TEST(RunConfigTest, MissingFieldsTakeTheirDefaults) {
  ModelConfig defaults;
  defaults.source_vocab = defaults.target_vocab = 9;
  const RunConfig read = parse(std::string(R"("format": 1, "kind": "encoder", )") + kSmallest);
  EXPECT_EQ(read.model, defaults);
  EXPECT_EQ(read.version, "");

  const testing::TempDir directory;
  const RunDirectory run(directory.path());
  spill(run.training(), R"({"batch_tokens": 77})");
  TrainingConfig training;
  training.batch_tokens = 77;
  EXPECT_EQ(read_fields<TrainingConfig>(run, run.training()), training);
}

TEST(RunConfigTest, FormatAndKindAreNeeded) {
  EXPECT_EQ(parse_error(std::string(R"("kind": "encoder", )") + kSmallest), "config.json: format is missing");
  EXPECT_EQ(parse_error(std::string(R"("format": 1, )") + kSmallest), "config.json: kind is missing");
}

TEST(RunConfigTest, NamesTheVersionThatWroteANewerFormat) {
  // Nothing else of such a file is read.
  EXPECT_EQ(parse_error(R"("format": 2, "version": "3.1.0", "kind": "diffuser", "colour": 3)"),
            "config.json: format 2 was written by qkv 3.1.0; " + own_version() + " reads formats up to 1");
  EXPECT_EQ(parse_error(R"("format": 9)"), "config.json: format 9 was written by qkv of an unknown version; " +
                                               own_version() + " reads formats up to 1");
  EXPECT_EQ(parse_error(R"("format": -1)"), "config.json: format must be at least 1 (is -1)");
}

TEST(RunConfigTest, NamesTheVersionThatWroteAnUnknownFieldOrValue) {
  const std::string header = R"("format": 1, "kind": "translator", "version": "3.1.0", )";
  EXPECT_EQ(parse_error(header + R"("colour": 3)"), "config.json: unknown name \"colour\" (run written by qkv 3.1.0)");
  testing::expect_contains(parse_error(header + R"("norm": "none")"), "(run written by qkv 3.1.0)");
  testing::expect_contains(parse_error(R"("format": 1, "version": "3.1.0", "kind": "diffuser")"),
                           "(run written by qkv 3.1.0)");
}

TEST(RunConfigTest, TheOtherFilesFollowTheSameRules) {
  const testing::TempDir directory;
  const RunDirectory run(directory.path());
  spill(run.training(), R"({"colour": 3})");
  const auto error = [&] { return error_of([&] { read_fields<TrainingConfig>(run, run.training()); }); };
  EXPECT_EQ(error(), run.training() + ": unknown name \"colour\"");
  spill(run.config(), R"({"format": 1, "version": "3.1.0"})");
  EXPECT_EQ(error(), run.training() + ": unknown name \"colour\" (run written by qkv 3.1.0)");
  write_fields(run.training(), TrainingConfig());
  EXPECT_EQ(read_fields<TrainingConfig>(run, run.training()), TrainingConfig());
}

TEST(RunConfigTest, RejectsAModelThatCannotBeBuilt) {
  testing::expect_contains(parse_error(R"("format": 1, "kind": "encoder", "heads": 0)"), "config.json: model: ");
  EXPECT_EQ(error_of([] { read_config(RunDirectory("nowhere")); }), "nowhere: is not a run directory");
}

}  // namespace
}  // namespace qkv
