#include "ranks/launcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;

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
    EXPECT_EQ(error_of([&] {
                launch_of({{"PMI_SIZE", text}});
              }),
              fmt::format("PMI_SIZE must be a number of ranks between 1 and 4096 (is \"{}\")", text));
}

TEST(TransportPlugin, ThatIsMissingIsAnErrorThatNamesIt) {
  const testing::TempDir directory;
  const std::string path = directory / "libqkv_mpi.so";
  EXPECT_EQ(
      error_of([&] { load_transport(path); }),
      path + ": the transport plugin cannot be loaded: cannot open shared object file: No such file or directory");
  testing::spill(path, "no library");
  testing::expect_contains(error_of([&] { load_transport(path); }), path + ": the transport plugin cannot be loaded: ");
}

TEST(TransportPlugin, AnotherLibraryIsRefused) {
  EXPECT_EQ(error_of([] { load_transport("libm.so.6"); }),
            "libm.so.6: has no function qkv_transport_1; expected a transport plugin of version 1");
}

TEST(TransportPlugin, OfOneMachineHasTheInterface) {
  const qkv_transport& local = load_transport(QKV_LOCAL_PLUGIN);
  EXPECT_EQ(std::string(local.name()), "qkv_local");
}

TEST(TransportPlugin, IsTheInstalledOneOrThatOfTheEnvironmentOrThatOfTheProgramsFolder) {
  ::unsetenv("QKV_TRANSPORT");
  EXPECT_TRUE(transport_path("mpi").ends_with("/qkv/libqkv_mpi.so")) << transport_path("mpi");
  const std::string near = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libqkv_sample.so";
  testing::spill(near, "");
  EXPECT_EQ(transport_path("sample"), near);
  std::filesystem::remove(near);
  ::setenv("QKV_TRANSPORT", "/some/plugin.so", 1);
  EXPECT_EQ(transport_path("mpi"), "/some/plugin.so");
  ::unsetenv("QKV_TRANSPORT");
}

}  // namespace
}  // namespace qkv
