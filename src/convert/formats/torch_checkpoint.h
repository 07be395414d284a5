// Checkpoints of PyTorch: the tensors of a state dictionary that torch.save wrote (pytorch_model.bin, *.pt, *.pth).
//
//   zip container    NAME/data.pkl: the dictionary; NAME/data/KEY: the bytes of a storage; NAME/byteorder
//   older container  pickles of a magic number, of a version, of the sizes of types, of the dictionary, and of the list
//                    of storages; then for each storage the number of its elements (int64) and its bytes
//
// A tensor is a view of a storage: offset, sizes and strides in elements.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "io/mapped_file.h"
#include "io/weights/tensor_view.h"

namespace qkv {

// An untrusted checkpoint, mapped into memory. Its views are valid as long as it lives.
class TorchCheckpoint {
 public:
  // Whether a file begins like one of the two containers.
  static bool recognizes(const std::string& path);

  // Throws Error, naming the file and the tensor if there is one, unless the file holds nothing but a dictionary of
  // tensors within its bytes. The dictionary may be the member `state_dict`, `model_state_dict` or `model` of another
  // one. Nothing in the file is executed. Tensors whose elements are not adjacent are copied; the copies take at most
  // the size of the file.
  static TorchCheckpoint open(const std::string& path);

  const std::map<std::string, TensorView>& views() const { return views_; }

 private:
  explicit TorchCheckpoint(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::vector<std::vector<std::byte>> copies_;
  std::map<std::string, TensorView> views_;
};

}  // namespace qkv
