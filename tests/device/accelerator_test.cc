// Loading a device, its memory, and what is refused.
#include "device/accelerator.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/arena.h"
#include "tests/device/device_case.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::HostDevice;
using testing::numbers_of;

TEST(DevicePlugin, AnotherLibraryIsRefused) {
  EXPECT_EQ(error_of([] { load_device("libm.so.6"); }),
            "libm.so.6: has no function qkv_device_1; expected a device plugin of version 1");
  testing::expect_contains(error_of([] { load_device("/nowhere/libqkv_cuda.so"); }),
                           "/nowhere/libqkv_cuda.so: the device plugin cannot be loaded: ");
}

TEST(DevicePlugin, ThatLacksAFunctionIsRefused) {
  EXPECT_EQ(error_of([] { load_device(QKV_INCOMPLETE_DEVICE); }), QKV_INCOMPLETE_DEVICE
            ": qkv_device_1 returns a table with missing functions; expected those of qkv/device.h");
}

TEST(DevicePlugin, ItsSymbolsAreNotSeenByOtherLibraries) {
  load_device(QKV_HOST_DEVICE);
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "qkv_device_1"), nullptr);
}

TEST(DevicePlugin, ThatMissesADriverIsNotUsed) {
  qkv_device table = load_device(QKV_HOST_DEVICE);
  table.missing = [] { return "no driver is installed"; };
  EXPECT_EQ(error_of([&] { Accelerator device(table); }), "host device: no driver is installed");
}

TEST(Accelerator, RefusesADeviceThatDoesNotExist) {
  EXPECT_EQ(error_of([] { Accelerator device(load_device(QKV_HOST_DEVICE), 1); }),
            "host device: device must be from 0 to 0 (is 1)");
}

TEST(Accelerator, IsTheOnlyOne) {
  EXPECT_EQ(error_of([] { Accelerator::current(); }), "device: none is in use");
  const HostDevice device;
  EXPECT_EQ(error_of([] { HostDevice second; }), "host device: cannot be used in addition to host device");
  EXPECT_EQ(&Accelerator::current(), &device.accelerator);
}

TEST(Accelerator, ErrorsNameDeviceAndOp) {
  qkv_device table = load_device(QKV_HOST_DEVICE);
  table.fill = [](qkv_element, qkv_matrix, float) { return -1; };
  table.error = [] { return "out of memory"; };
  const Accelerator device(table);
  Arena arena;
  const auto m = arena.matrix<Device<float>>(2, 3);
  EXPECT_EQ(error_of([&] { fill<Device<float>>(m, 1); }), "host device: fill: out of memory");
}

TEST(DeviceArena, TheErrorOfThePluginIsKeptIfMemoryIsExhausted) {
  qkv_device table = load_device(QKV_HOST_DEVICE);
  table.commit = [](void*, size_t, size_t) { return -1; };
  table.error = [] { return "out of memory"; };
  const Accelerator device(table);
  Arena arena;
  EXPECT_EQ(error_of([&] { arena.take<Device<float>>(1); }),
            "host device: cannot take 32 MiB of memory: out of memory");
}

// A command runs until another thread has had time to get memory.
TEST(DeviceArena, GetsMemoryBetweenCommands) {
  static std::atomic<bool> is_busy, begins, overlaps;
  static const qkv_device& plugin = load_device(QKV_HOST_DEVICE);
  qkv_device table = plugin;
  table.fill = [](qkv_element, qkv_matrix, float) {
    is_busy = begins = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    is_busy = false;
    return 0;
  };
  table.reserve = [](size_t bytes, void** address) {
    if (is_busy) overlaps = true;
    return plugin.reserve(bytes, address);
  };
  table.commit = [](void* address, size_t begin, size_t end) {
    if (is_busy) overlaps = true;
    return plugin.commit(address, begin, end);
  };
  table.release = [](void* address, size_t bytes) {
    if (is_busy) overlaps = true;
    return plugin.release(address, bytes);
  };
  const Accelerator device(table);
  Arena first;
  const auto m = first.matrix<Device<float>>(1, 1);
  std::thread command([&] { fill<Device<float>>(m, 1); });
  while (!begins) std::this_thread::yield();
  Arena().take<Device<float>>(1);
  command.join();
  EXPECT_FALSE(overlaps);
}

TEST(DeviceArena, HasMemoryOfBothSidesThatAScopeReleases) {
  const HostDevice device;
  Arena arena;
  Device<float>* first = nullptr;
  int32_t* number = nullptr;
  {
    const Arena::Scope scope(arena);
    first = arena.take<Device<float>>(1000);
    number = arena.take<int32_t>(1000);
    *number = 7;
  }
  EXPECT_EQ(arena.take<Device<float>>(1), first);
  EXPECT_EQ(arena.take<int32_t>(1), number);
  EXPECT_EQ(arena.device_high_water(), 4000u);
}

TEST(DeviceArena, FreshMemoryIsZero) {
  const HostDevice device;
  Arena arena;
  for (const float x : numbers_of(arena.matrix<Device<bfloat16>>(3, 5))) EXPECT_EQ(x, 0);
}

TEST(DeviceArenaDeathTest, TheHostCannotTouchIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto touch = [] {
    const HostDevice device;
    Arena arena;
    const auto m = arena.matrix<Device<float>>(1, 1);
    fill<Device<float>>(m, 1);
    *reinterpret_cast<volatile float*>(m.data) = 2;
  };
  EXPECT_DEATH(touch(), "");
}

TEST(DeviceCopies, RoundToNearest) {
  const HostDevice device;
  Arena arena;
  const std::vector<float> numbers = {1, -0.1f, 3.14159f, 1e-30f, 65504};
  auto* const wide = arena.take<Device<float>>(5);
  upload(numbers, wide);
  EXPECT_EQ(numbers_of(std::span(wide, 5)), numbers);
  auto* const narrow = arena.take<Device<bfloat16>>(5);
  upload(numbers, narrow);
  std::vector<float> rounded;
  for (const float x : numbers) rounded.push_back(bfloat16(x));
  EXPECT_EQ(numbers_of(std::span(narrow, 5)), rounded);
}

}  // namespace
}  // namespace qkv
