#include "device/open_device.h"

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "core/fail.h"
#include "core/system/plugin.h"

namespace qkv {

DevicePlugin find_device_plugin() {
  constexpr const char* kVariable = "QKV_DEVICE";
  const char* const given = std::getenv(kVariable);
  DevicePlugin found{plugin_path("cuda", kVariable), false, given && *given, nullptr, ""};
  std::error_code ignored;
  found.exists = std::filesystem::exists(found.path, ignored);
  if (!found.exists) {
    found.missing = fmt::format("the plugin {} does not exist", found.path);
    return found;
  }
  try {
    const qkv_device& table = load_device(found.path);
    const char* const missing = table.missing();
    if (missing)
      found.missing = fmt::format("{}: {}", table.name(), missing);
    else if (table.count() == 0)
      found.missing = fmt::format("{}: no device was found", table.name());
    else
      found.table = &table;
  } catch (const Error& e) {
    found.missing = e.what();
  }
  return found;
}

std::shared_ptr<Accelerator> open_device() {
  static std::mutex mutex;
  static std::condition_variable closed;
  static std::weak_ptr<Accelerator> opened;
  static bool exists = false;  // an Accelerator, which may be about to be destroyed
  std::unique_lock lock(mutex);
  for (;; closed.wait(lock)) {
    if (std::shared_ptr<Accelerator> device = opened.lock()) return device;
    if (!exists) break;
  }
  const DevicePlugin plugin = find_device_plugin();
  if (!plugin.table)
    fail("device cuda: {}; use device cpu, or set QKV_DEVICE to the path of a device plugin", plugin.missing);
  const std::shared_ptr<Accelerator> device(new Accelerator(*plugin.table), [](const Accelerator* ended) {
    delete ended;
    const std::lock_guard last(mutex);
    exists = false;
    closed.notify_all();
  });
  exists = true;
  opened = device;
  return device;
}

}  // namespace qkv
