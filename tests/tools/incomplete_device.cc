// A device plugin whose table lacks functions, as one for another version of qkv/device.h would.
#include "qkv/device.h"

extern "C" [[gnu::visibility("default")]] const qkv_device* qkv_device_1() {
  static const qkv_device table = {};
  return &table;
}
