// The storages of a PyTorch checkpoint: arrays of elements, of which tensors are views.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "convert/formats/pickle.h"
#include "io/weights/tensor_view.h"

namespace qkv {

struct TorchStorage {
  DType dtype = DType::f32;
  int64_t elements = 0;
  std::span<const std::byte> data = {};
};

using TorchStorages = std::map<std::string_view, TorchStorage>;  // by key

// The pickle of a checkpoint's objects, and the storages that it names.
struct TorchObjects {
  Pickle pickle;
  TorchStorages storages;
};

// Reads either container; `path` names the file in errors. Texts and storages stay in `bytes`. Throws Error unless the
// storages are as large as the pickle says.
TorchObjects read_torch_objects(std::span<const std::byte> bytes, const std::string& path);

// Returns the size of the pickle with the magic number with which the older container begins; 0 for other files.
size_t old_torch_header(std::string_view bytes);

// Returns the storage that a persistent object of the pickle names.
const TorchStorage& storage_of(const TorchObjects& objects, const PickleValue& persistent);

}  // namespace qkv
