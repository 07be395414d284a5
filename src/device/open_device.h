// The device that a recipe or an option names: the plugin libqkv_cuda.so, or the one whose path is in the environment
// variable QKV_DEVICE.
#pragma once

#include <memory>
#include <string>

#include "device/accelerator.h"

namespace qkv {

// A device plugin, as far as it was found.
struct DevicePlugin {
  std::string path;
  bool exists = false;
  bool is_given = false;              // by QKV_DEVICE
  const qkv_device* table = nullptr;  // null if it cannot be used
  std::string missing;                // why not, in one line; "" if it can
};
DevicePlugin find_device_plugin();

// Returns its first device, which is open while a pointer to it exists. Throws Error, with what is missing, if there is
// none.
std::shared_ptr<Accelerator> open_device();

}  // namespace qkv
