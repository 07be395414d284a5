// The safetensors format: named tensors in one file (huggingface/safetensors).
//
//   file   = size header data            size: uint64, little-endian: bytes of header
//   header = JSON {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …,
//                  "__metadata__": {string: string}}, spaces at its end allowed
//   data   = the tensors' bytes, row-major, little-endian, without gaps or overlap; offsets count from its start
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
#include "io/tensor_view.h"

namespace qkv {

using Metadata = std::map<std::string, std::string>;

// A file opened for reading, mapped into memory. Views hold as long as it lives.
class Safetensors {
 public:
  // Throws Error that names the file, and the tensor where there is one, unless every byte of the file has its place
  // as the grammar says. Nothing is allocated beyond a small multiple of the header, which is at most 100 MB.
  static Safetensors open(const std::string& path);

  const std::vector<std::string>& names() const { return names_; }  // in the order of their data
  const TensorView* find(const std::string& name) const;            // null if there is none
  const Metadata& metadata() const { return metadata_; }

  // Copies the tensor to `to`. Throws Error unless it is there, of type F32 and of this shape; to.size() is the
  // product of the shape.
  void read(const std::string& name, const std::vector<int64_t>& shape, std::span<float> to) const;
  // The same for a type of choice.
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

// Writes the file as a whole or not at all (AtomicFile), the same bytes for the same content: tensors in the order
// given, metadata sorted, data from a multiple of 64 bytes on. data(i, write) hands the bytes of tensor i to `write`,
// in as many parts as it likes. Throws Error if a name stands twice, is "__metadata__" or not UTF-8, or if a tensor's
// bytes do not fit its shape.
void write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                       const std::function<void(size_t, WriteBytes)>& data, const Metadata& metadata = {});

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

// The same with all data at hand.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata = {});

}  // namespace qkv
