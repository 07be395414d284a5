// The tensors of the files that hold the weights of a model: safetensors, or checkpoints of PyTorch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convert/model_files.h"
#include "io/weights/tensor_view.h"

namespace qkv {

class Shards {
 public:
  // Whether a directory has weights in the Hugging Face layout: model.safetensors, pytorch_model.bin, or the index of
  // one of these in several files.
  static bool present(const ModelFiles& from);

  // Opens the first of these that the directory has: model.safetensors, model.safetensors.index.json,
  // pytorch_model.bin, pytorch_model.bin.index.json. Throws Error, naming the file, if the index names a file outside
  // the directory, or if a tensor is in two files.
  explicit Shards(const ModelFiles& from);
  // Opens one file: a checkpoint if it begins like one or its name ends in .bin, .pt, .pth or .ckpt, or else
  // safetensors.
  explicit Shards(const std::string& path);

  const std::string& path() const { return path_; }                          // of the file or of the index, for errors
  const std::map<std::string, TensorView>& views() const { return views_; }  // valid as long as this object

 private:
  void open_index(const ModelFiles& from, const std::string& name);
  void open(const std::string& path);

  std::string path_;
  std::vector<std::shared_ptr<const void>> files_;
  std::map<std::string, TensorView> views_;
};

}  // namespace qkv
