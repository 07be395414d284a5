// The table of qkv/device.h, which each file of ops fills in part.
#pragma once

#include <exception>
#include <string>

#include "qkv/device.h"
#include "runtime.h"

namespace qkv::cuda {

void add_rows(qkv_device& table);
void add_embeddings(qkv_device& table);
void add_elements(qkv_device& table);
void add_norms(qkv_device& table);
void add_products(qkv_device& table);
void add_attention(qkv_device& table);
void add_attention_backward(qkv_device& table);
void add_cached_attention(qkv_device& table);
void add_cross_entropy(qkv_device& table);
void add_next_tokens(qkv_device& table);
void add_sampled_losses(qkv_device& table);
void add_adam(qkv_device& table);

std::string& last_error();

// A function as an entry of the table: it has access to the device, and throws nothing.
template <auto F>
struct Entry;
template <class... Arguments, void (*F)(Arguments...)>
struct Entry<F> {
  static int call(Arguments... arguments) {
    try {
      const Access access;
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

}  // namespace qkv::cuda
