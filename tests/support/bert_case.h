// A small encoder in the Hugging Face layout, and what transformers and torch make of a few texts: tests/golden/bert.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "io/weights/safetensors.h"
#include "qkv/error.h"
#include "qkv/import.h"
#include "qkv/text.h"

namespace qkv::testing {

// Text is tokens with spaces between.
inline ImportOptions listed_tokens() {
  ImportOptions options;
  options.tokens = true;
  return options;
}

class BertCase {
 public:
  explicit BertCase(const std::string& name)
      : path_(std::string(QKV_GOLDEN_DIR "/bert/") + name), file_(Safetensors::open(path_ + "/expected.safetensors")) {}

  const std::string& path() const { return path_; }
  static std::vector<std::string> texts() { return read_lines(QKV_GOLDEN_DIR "/bert/texts.txt"); }

  template <class T>
  std::vector<T> values(const std::string& name) const {
    const TensorView* tensor = file_.find(name);
    if (!tensor) throw Error(path_ + ": no " + name);
    std::vector<T> values(tensor->data.size() / sizeof(T));
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
    return values;
  }
  // The tokens of each text.
  std::vector<std::vector<int32_t>> ids() const {
    const auto all = values<int32_t>("ids"), offsets = values<int32_t>("offsets");
    std::vector<std::vector<int32_t>> ids;
    for (size_t i = 0; i + 1 < offsets.size(); i++)
      ids.emplace_back(all.begin() + offsets[i], all.begin() + offsets[i + 1]);
    return ids;
  }

 private:
  std::string path_;
  Safetensors file_;
};

}  // namespace qkv::testing
