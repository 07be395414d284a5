// Changes tensors of a safetensors file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/weights/safetensors.h"

namespace qkv::testing {

// A tensor that owns its bytes.
struct Tensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

inline void rewrite_tensors(const std::string& path, const std::function<void(std::vector<Tensor>&)>& change) {
  std::vector<Tensor> tensors;
  {
    const Safetensors file = Safetensors::open(path);
    for (const std::string& name : file.names()) {
      const TensorView& view = *file.find(name);
      tensors.push_back({name, view.dtype, view.shape, {view.data.begin(), view.data.end()}});
    }
  }
  change(tensors);
  std::vector<NamedTensor> views;
  for (const Tensor& t : tensors) views.push_back({t.name, {t.dtype, t.shape, t.bytes}});
  write_safetensors(path, views);
}

}  // namespace qkv::testing
