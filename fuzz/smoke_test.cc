// Runs every target on its seeds and on changed copies of them, the same ones each time. libFuzzer, which looks for
// inputs that reach new code, finds more (fuzz/run.sh).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/random.h"
#include "fuzz/reader.h"
#include "fuzz/seeds.h"
#include "tests/support/temp_dir.h"

namespace qkv::fuzz {
namespace {

constexpr uint64_t kInputs = 1000, kMostChanges = 8;

// Changes a few bytes in place, or inserts some of another seed.
void change(std::string& bytes, const std::string& other, Random& random) {
  const size_t place = random.below(bytes.size() + 1), length = std::min(1 + random.below(8), bytes.size() - place);
  switch (random.below(6)) {
    case 0: bytes.erase(place, length); break;
    case 1: bytes.insert(place, other.substr(random.below(other.size() + 1), 1 + random.below(64))); break;
    case 2: bytes.insert(place, bytes.substr(place, length)); break;
    case 3: bytes.replace(place, length, length, "\0\1\x7f\xff"[random.below(4)]); break;
    case 4:
      if (random.below(8) == 0) bytes.resize(place);
      break;
    default:
      if (length > 0) bytes[place] = static_cast<char>(bytes[place] ^ 1 << random.below(8));
  }
}

struct SeedDirectory : testing::TempDir {
  SeedDirectory() { write_seeds(path()); }
};

std::vector<std::string> seeds_of(const std::string& target) {
  static const SeedDirectory directory;
  std::vector<std::string> seeds;
  for (const auto& file : std::filesystem::directory_iterator(directory / target))
    seeds.push_back(testing::slurp(file.path()));
  std::ranges::sort(seeds);
  return seeds;
}

class Readers : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(watch_memory()); }
};

TEST_P(Readers, SurviveBrokenFiles) {
  const Read target = find_target(GetParam());
  const std::vector<std::string> seeds = seeds_of(GetParam());
  ASSERT_FALSE(seeds.empty());
  int64_t accepted = 0;
  for (const std::string& seed : seeds) accepted += run(target, seed);
  EXPECT_GT(accepted, 0) << "only a seed that is read to its end leads a fuzzer beyond the first check";
  for (uint64_t i = 0; i < kInputs; i++) {
    Random random(1, Stream::test, i);
    std::string bytes = seeds[random.below(seeds.size())];
    const std::string& other = seeds[random.below(seeds.size())];
    for (uint64_t n = 1 + random.below(kMostChanges); n > 0; n--) change(bytes, other, random);
    run(target, bytes);
  }
}

#define QKV_NAME(target) #target,
constexpr const char* kTargets[] = {QKV_FUZZ_TARGETS(QKV_NAME)};
#undef QKV_NAME
INSTANTIATE_TEST_SUITE_P(Fuzz, Readers, ::testing::ValuesIn(kTargets),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace qkv::fuzz
