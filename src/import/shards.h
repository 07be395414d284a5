// The tensors of a directory in the Hugging Face layout: those of model.safetensors, or of the files that
// model.safetensors.index.json names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/model_files.h"
#include "io/safetensors.h"
#include "io/tensor_view.h"

namespace qkv {

class Shards {
 public:
  // Opens the files. Throws Error, naming the file, if the index names a file outside the directory, or if a tensor is
  // in two files.
  explicit Shards(const ModelFiles& from);

  const std::map<std::string, TensorView>& views() const { return views_; }  // valid as long as this object

 private:
  void open(const ModelFiles& from, const std::string& name);

  std::vector<Safetensors> files_;
  std::map<std::string, TensorView> views_;
};

}  // namespace qkv
