// A device plugin for NVIDIA GPUs: the table of its functions. An op that a later version of qkv/device.h has, and
// the plugin lacks, is null, and a program refuses the table.
#include "table.h"

namespace qkv::cuda {

std::string& last_error() {
  static std::string text;
  return text;
}

namespace {

qkv_device make_table() {
  qkv_device t = {};
  t.name = name;
  t.missing = missing;
  t.count = count;
  t.describe = entry<describe>;
  t.error = [] { return last_error().c_str(); };
  t.open = entry<open>;
  t.reserve = entry<reserve>;
  t.commit = entry<commit>;
  t.release = entry<release>;
  t.upload = entry<upload>;
  t.download = entry<download>;
  t.copy = entry<copy>;
  t.synchronize = entry<synchronize>;
  add_rows(t);
  add_embeddings(t);
  add_elements(t);
  add_norms(t);
  add_products(t);
  add_attention(t);
  add_attention_backward(t);
  add_cached_attention(t);
  add_cross_entropy(t);
  add_next_tokens(t);
  add_sampled_losses(t);
  add_adam(t);
  return t;
}

}  // namespace
}  // namespace qkv::cuda

extern "C" [[gnu::visibility("default")]] const qkv_device* qkv_device_1() {
  static const qkv_device table = qkv::cuda::make_table();
  return &table;
}
