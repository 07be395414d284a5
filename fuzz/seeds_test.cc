// Runs every target on its seeds. libFuzzer (fuzz/run.sh) changes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "documents/document.h"
#include "fuzz/reader.h"
#include "fuzz/seeds.h"
#include "tests/support/temp_dir.h"

namespace qkv::fuzz {
namespace {

struct SeedDirectory : testing::TempDir {
  SeedDirectory() { write_seeds(path()); }
};

class Readers : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(watch_memory()); }
};

TEST_P(Readers, AcceptASeed) {
  static const SeedDirectory directory;
  int64_t accepted = 0;
  for (const auto& seed : std::filesystem::directory_iterator(directory / GetParam()))
    accepted += run(find_target(GetParam()), testing::slurp(seed.path()));
  EXPECT_GT(accepted, 0) << "only a seed that is read to its end leads a fuzzer beyond the first check";
}

// Formats that are read alike, as odt, odp and ods are, have one target.
TEST(FuzzTargets, ReadEveryFormatOfDocuments) {
  const auto has_target = [](const DocumentFormat* format) {
    return find_target("documents_" + std::string(format->name)) != nullptr;
  };
  const auto formats = all_document_formats();
  for (const DocumentFormat* format : formats)
    EXPECT_TRUE(has_target(format) || std::ranges::any_of(formats, [&](const DocumentFormat* other) {
                  return format->split_member && format->split_member == other->split_member && has_target(other);
                }))
        << format->name;
}

#define QKV_NAME(target) #target,
constexpr const char* kTargets[] = {QKV_FUZZ_TARGETS(QKV_NAME)};
#undef QKV_NAME
INSTANTIATE_TEST_SUITE_P(Fuzz, Readers, ::testing::ValuesIn(kTargets),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace qkv::fuzz
