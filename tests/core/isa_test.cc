#include "core/system/isa.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/error.h"

namespace qkv {
namespace {

TEST(Isa, EveryMachineHasThePortableSetOrNeon) {
  const std::vector<std::string> isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_TRUE(isas.back() == "portable" || isas == std::vector<std::string>{"neon"}) << isas.back();
  EXPECT_NE(std::find(isas.begin(), isas.end(), active_isa()), isas.end());
}

#ifdef __x86_64__
// The build with sanitizers has two of the three sets; with the portable one alone its tests take several times as
// long.
TEST(Isa, AMachineWithWideVectorsUsesThem) {
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  EXPECT_EQ(available_isas().front() != "portable", has_avx2);
}
#endif

TEST(Isa, ForcedSetIsTheActiveOne) {
  const std::string before = active_isa();
  for (const std::string& isa : available_isas()) {
    force_isa(isa);
    EXPECT_EQ(active_isa(), isa);
  }
  force_isa(before);
}

TEST(Isa, AvailableSetsDoNotChangeWhenOneIsForced) {
  const std::string before = active_isa();
  const std::vector<std::string> isas = available_isas();
  force_isa("portable");
  EXPECT_EQ(available_isas(), isas);
  force_isa(before);
}

TEST(Isa, UnknownAndMissingSetsAreErrorsThatNameThem) {
  for (const std::string name : {"sse9", "", "AVX2"}) try {
      force_isa(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("\"" + name + "\""), std::string::npos) << error.what();
    }
  for (const std::string name : {"avx512", "avx2", "neon"}) {
    const std::vector<std::string> isas = available_isas();
    if (std::find(isas.begin(), isas.end(), name) == isas.end()) {
      EXPECT_THROW(force_isa(name), Error);
    }
  }
}

}  // namespace
}  // namespace qkv
