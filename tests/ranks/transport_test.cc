#include "ranks/transport.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;

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
  EXPECT_TRUE(plugin_path("mpi").ends_with("/qkv/libqkv_mpi.so")) << plugin_path("mpi");
  const std::string near = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libqkv_sample.so";
  testing::spill(near, "");
  EXPECT_EQ(plugin_path("sample"), near);
  std::filesystem::remove(near);
  ::setenv("QKV_TRANSPORT", "/some/plugin.so", 1);
  EXPECT_EQ(plugin_path("mpi"), "/some/plugin.so");
  ::unsetenv("QKV_TRANSPORT");
}

}  // namespace
}  // namespace qkv
