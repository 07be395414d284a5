// The vectors that an embedder learns by distillation: those of another run, or of a file of NumPy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/mapped_file.h"
#include "io/weights/tensor_view.h"
#include "qkv/embedder.h"

namespace qkv {

class Teacher {
 public:
  // path: a run that embeds texts, or a file of vectors of float32, [vectors, components]. Throws Error, naming it.
  explicit Teacher(const std::string& path);

  int64_t width() const { return width_; }  // components of a vector
  bool is_file() const { return file_.has_value(); }
  int64_t vectors() const { return is_file() ? array_.shape[0] : 0; }  // in the file
  std::string hash() const;                                            // of the weights or the file

  // Returns the vectors of texts, [texts, width]. Requires a run.
  std::vector<float> embed(const std::vector<std::string>& texts) const { return run_->embed(texts).values; }
  // Returns these vectors of the file, [numbers, width]. Throws Error, naming the vector, for one that the file lacks
  // or that is not finite.
  std::vector<float> read(std::span<const int64_t> numbers) const;

 private:
  std::string path_;
  std::unique_ptr<const Embedder> run_;
  std::optional<MappedFile> file_;
  TensorView array_ = {};
  int64_t width_ = 0;
};

}  // namespace qkv
