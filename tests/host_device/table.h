// The table of the host device (qkv/device.h), which each file of ops fills in part.
#pragma once

#include <exception>
#include <string>

#include "host_device/memory.h"
#include "qkv/device.h"

namespace qkv::host_device {

void add_rows(qkv_device& table);
void add_products(qkv_device& table);
void add_attention(qkv_device& table);
void add_losses(qkv_device& table);

std::string& last_error();

// An op as an entry of the table: it has access to the memory of the device, and throws nothing.
template <auto F>
struct Entry;
template <class... Arguments, void (*F)(Arguments...)>
struct Entry<F> {
  static int call(Arguments... arguments) {
    const Access access;
    try {
      F(arguments...);
      return 0;
    } catch (const std::exception& e) {
      last_error() = e.what();
      return -1;
    }
  }
};
template <auto F>
constexpr auto entry = &Entry<F>::call;

}  // namespace qkv::host_device
