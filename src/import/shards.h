// The tensors of a directory in the Hugging Face layout: of model.safetensors, or of the files that
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
  // Throws Error, naming the file: an index whose files are not in this directory, a tensor that is in two of them.
  explicit Shards(const ModelFiles& from);

  const std::map<std::string, TensorView>& views() const { return views_; }  // of the files, which this holds

 private:
  void open(const ModelFiles& from, const std::string& name);

  std::vector<Safetensors> files_;
  std::map<std::string, TensorView> views_;
};

}  // namespace qkv
