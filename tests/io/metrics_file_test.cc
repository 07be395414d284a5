// metrics.jsonl: lines are appended whole, and a resumed run drops those that it will write again.
#include "io/metrics_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/system/file_descriptor.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::spill;
using testing::TempDir;

const std::string kThree = "{\"step\":10,\"loss\":2.5}\n{\"step\":20,\"loss\":2.25}\n{\"step\":30,\"loss\":2.0}\n";

TEST(Metrics, AreReadableLineByLine) {
  const TempDir directory;
  MetricsWriter writer(directory / "m");
  writer.append({{"step", 10}, {"loss", 2.5}});
  EXPECT_EQ(read_file(directory / "m", 1000), "{\"step\":10,\"loss\":2.5}\n");
  writer.append({{"step", 20}, {"loss", NAN}, {"note", "a\nb"}});
  MetricsWriter(directory / "m").append({{"step", 30}});
  EXPECT_EQ(read_file(directory / "m", 1000),
            "{\"step\":10,\"loss\":2.5}\n{\"step\":20,\"loss\":null,\"note\":\"a\\nb\"}\n{\"step\":30}\n");
}

TEST(Metrics, AreTruncatedAfterAStep) {
  const TempDir directory;
  const std::string path = directory / "m";
  for (const auto& [step, lines] : {std::pair(9, 0), {10, 1}, {19, 1}, {20, 2}, {29, 2}, {30, 3}, {1000, 3}}) {
    spill(path, kThree);
    const auto last = truncate_metrics_after(path, step);
    size_t size = 0;
    for (int line = 0; line < lines; line++) size = kThree.find('\n', size) + 1;
    EXPECT_EQ(read_file(path, 1000), kThree.substr(0, size));
    EXPECT_EQ(last ? (*last)["step"].get<int>() : 0, 10 * lines);
  }
}

TEST(Metrics, OfManyStepsAreTruncatedAfterOne) {
  const TempDir directory;
  const std::string path = directory / "m";
  std::string kept, all;
  for (int step = 1; step <= 40000; step++) {  // 2 to 4 MB: several blocks, whose ends are within lines
    const std::string line = fmt::format("{{\"step\":{},\"note\":\"{}\"}}\n", step, std::string(step % 100, 'x'));
    if (step <= 30000) kept += line;
    all += line;
  }
  spill(path, all);
  EXPECT_EQ((*truncate_metrics_after(path, 30000))["step"], 30000);
  EXPECT_EQ(read_file(path, all.size()), kept);
}

TEST(Metrics, LoseOnlyATruncatedLine) {
  const TempDir directory;
  const std::string path = directory / "m";
  for (size_t size = kThree.find('\n'); size <= kThree.size(); size += 5) {
    spill(path, kThree.substr(0, size));
    truncate_metrics_after(path, 1000);
    const size_t whole = kThree.rfind('\n', size - 1) + 1;  // 0 where there is none
    EXPECT_EQ(read_file(path, 1000), kThree.substr(0, whole));
  }
}

TEST(Metrics, AMissingFileHasNoRecords) {
  const TempDir directory;
  EXPECT_FALSE(truncate_metrics_after(directory / "m", 1));
  EXPECT_FALSE(std::filesystem::exists(directory / "m"));
}

TEST(Metrics, ErrorsNameTheLine) {
  const TempDir directory;
  const std::string path = directory / "m";
  for (const char* bad :
       {"{\"loss\":1}", "[]", "{\"step\":1.5}", "", "{\"step\":1", "{\"step\":9223372036854775808}"}) {
    const std::string content = kThree + bad + "\n";
    spill(path, content);
    expect_contains(error_of([&] { truncate_metrics_after(path, 5); }), path + ":4: ");
    EXPECT_EQ(read_file(path, 1000), content);
  }
  expect_contains(error_of([] {
                    MetricsWriter("/dev/full").append({{"step", 1}});
                  }),
                  "/dev/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace qkv
