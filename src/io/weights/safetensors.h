// The safetensors format: named tensors in one file (huggingface/safetensors).
//
//   file   = size header data            size: uint64, little-endian: bytes of header
//   header = JSON {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …,
//                  "__metadata__": {string: string}}, trailing spaces allowed
//   data   = the tensors' bytes, row-major, little-endian, without gaps or overlap; offsets count from its beginning
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "io/mapped_file.h"
#include "io/weights/tensor_view.h"

namespace qkv {

using Metadata = std::map<std::string, std::string>;

// A file opened for reading, mapped into memory. Views are valid as long as it lives.
class Safetensors {
 public:
  // Throws Error, naming the file and the tensor if there is one, unless every byte of the file matches the grammar.
  // Allocates at most a small multiple of the header, whose limit is 100 MB.
  static Safetensors open(const std::string& path);

  const std::vector<std::string>& names() const { return names_; }  // in the order of their data
  const TensorView* find(const std::string& name) const;            // null if it is missing
  const Metadata& metadata() const { return metadata_; }

  // Copies the tensor to `to`, whose size is the product of the shape. Throws Error unless the tensor exists and has
  // type F32 and this shape.
  void read(const std::string& name, const std::vector<int64_t>& shape, std::span<float> to) const;
  // The same for any type.
  void read(const std::string& name, DType dtype, const std::vector<int64_t>& shape, std::span<std::byte> to) const;

 private:
  Safetensors(const std::string& path, MappedFile file) : path_(path), file_(std::move(file)) {}

  std::string path_;
  MappedFile file_;
  std::vector<std::string> names_;
  std::map<std::string, TensorView> tensors_;
  Metadata metadata_;
};

using WriteBytes = FunctionRef<void(std::span<const std::byte>)>;

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
};

// Writes a file, completely or not at all (AtomicFile). The same content gives the same bytes: tensors in the given
// order, sorted metadata, data aligned to 64 bytes. data(i, write) passes the bytes of tensor i to `write`, in any
// number of parts. Throws Error if a name is duplicate, "__metadata__" or not UTF-8, or if the bytes of a tensor do not
// match its shape.
void write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                       const std::function<void(size_t, WriteBytes)>& data, const Metadata& metadata = {});

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

// The same with all data in memory.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata = {});

}  // namespace qkv
