#include "ranks/launcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/errors.h"

namespace qkv {
namespace {

Launch launch_of(const std::map<std::string, std::string>& variables) {
  return find_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, IsFoundByTheVariableThatItSets) {
  for (const auto& [name, kind] : {std::pair{"QKV_LOCAL_SIZE", "local"},
                                   {"OMPI_COMM_WORLD_SIZE", "mpi"},
                                   {"PMI_SIZE", "mpi"},
                                   {"SLURM_STEP_NUM_TASKS", "mpi"}}) {
    const Launch launch = launch_of({{name, "3"}});
    EXPECT_EQ(launch.kind, kind);
    EXPECT_EQ(launch.variable, name);
    EXPECT_EQ(launch.ranks, 3);
  }
}

TEST(Launcher, OneRankIsNoLaunch) {
  EXPECT_EQ(launch_of({}).ranks, 1);
  EXPECT_EQ(launch_of({{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "1"}}).ranks, 1);
}

TEST(Launcher, ANumberOfRanksThatIsNoneIsAnError) {
  for (const char* text : {"", "0", "-1", "4x", "4097", "99999999999"})
    EXPECT_EQ(testing::error_of([&] {
                launch_of({{"PMI_SIZE", text}});
              }),
              fmt::format("PMI_SIZE must be a number of ranks between 1 and 4096 (is \"{}\")", text));
}

}  // namespace
}  // namespace qkv
