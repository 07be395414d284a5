#include "io/weights/quantized_weights.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/to_size.h"
#include "io/weights/int4_weights.h"
#include "io/weights/int8_weights.h"

namespace qkv {
namespace {

// Blocks of 4-bit weights come first, which keeps those of one layer adjacent, then 8-bit weights, then floats.
struct Tensors {
  std::vector<NamedTensor> int4, int8, floats;

  void add(const Parameter<float>& p) {
    const size_t size = to_size(p.size());
    if (const Int4Matrix& W = p.int4; W.blocks) {
      int4.push_back({p.name, {DType::u8, int4_shape(p), {W.blocks, to_size(W.bytes())}}});
    } else if (p.int8.values.data) {
      int8.push_back({p.name, {DType::i8, p.shape, std::as_bytes(std::span(p.int8.values.data, size))}});
      floats.push_back({int8_scale(p.name), f32_tensor({p.shape[0]}, {p.int8.scale, to_size(p.shape[0])})});
    } else {
      floats.push_back({p.name, f32_tensor(p.shape, {p.value, size})});
    }
  }
};

}  // namespace

void quantize(ParameterList<float>& list, int bits) {
  if (bits == 4) quantize_int4(list);
  quantize_int8(list);
}

void save_quantized(const std::string& path, const ParameterList<float>& list) {
  Tensors tensors;
  for (const auto& p : list.all()) tensors.add(p);
  std::vector<NamedTensor> all = std::move(tensors.int4);
  all.insert(all.end(), tensors.int8.begin(), tensors.int8.end());
  all.insert(all.end(), tensors.floats.begin(), tensors.floats.end());
  write_safetensors(path, all, {{"format", "qkv"}});
}

void use_quantized(const std::string& path, const std::shared_ptr<const Safetensors>& file,
                   ParameterList<float>& list) {
  use_int4(path, file, list);
  use_int8(path, file, list);
}

int64_t count_int8(const ParameterList<float>& list) {
  return std::ranges::count_if(list.all(), [](const auto& p) { return p.int8.values.data != nullptr; });
}

int64_t count_int4(const ParameterList<float>& list) {
  return std::ranges::count_if(list.all(), [](const auto& p) { return p.int4.blocks != nullptr; });
}

bool is_quantized(const ParameterList<float>& list) { return count_int8(list) + count_int4(list) > 0; }

int64_t weight_bytes(const Parameter<float>& p) {
  constexpr int64_t kFloat = sizeof(float), kOfRow = sizeof(float) + sizeof(int32_t);
  if (p.int4.blocks) return p.int4.bytes();
  return p.int8.values.data ? p.size() + p.shape[0] * kOfRow : p.size() * kFloat;
}

int64_t weight_bytes(const ParameterList<float>& list) {
  int64_t bytes = 0;
  for (const auto& p : list.all()) bytes += weight_bytes(p);
  return bytes;
}

}  // namespace qkv
