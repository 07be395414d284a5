// A device plugin for tests: the plain reference loops on the host, in memory that nothing else can touch.
#include <cstdio>
#include <cstring>

#include "host_device/table.h"

namespace qkv::host_device {

std::string& last_error() {
  static std::string text;
  return text;
}

namespace {

int status(bool ok, const char* error) {
  if (!ok) last_error() = error;
  return ok ? 0 : -1;
}

void copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

qkv_device make_table() {
  qkv_device t = {};
  t.name = [] { return "host device"; };
  t.missing = []() -> const char* { return nullptr; };
  t.count = [] { return 1; };
  t.describe = [](int, qkv_device_info* info) {
    std::snprintf(info->name, sizeof(info->name), "host device");
    info->bytes = uint64_t{1} << 34;
    return 0;
  };
  t.error = [] { return last_error().c_str(); };
  t.open = [](int) { return 0; };
  t.reserve = [](size_t bytes, void** address) { return status(reserve(bytes, address), "no addresses are left"); };
  t.commit = [](void* address, size_t begin, size_t end) {
    return status(commit(address, begin, end), "memory is not committed in order");
  };
  t.release = [](void* address, size_t bytes) {
    release(address, bytes);
    return 0;
  };
  t.upload = t.copy = entry<copy>;
  t.download = entry<copy>;
  t.synchronize = [] { return 0; };
  add_rows(t);
  add_products(t);
  add_attention(t);
  add_losses(t);
  return t;
}

}  // namespace
}  // namespace qkv::host_device

extern "C" [[gnu::visibility("default")]] const qkv_device* qkv_device_1() {
  static const qkv_device table = qkv::host_device::make_table();
  return &table;
}
