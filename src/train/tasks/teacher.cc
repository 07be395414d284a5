#include "train/tasks/teacher.h"

#include <cstring>
#include <filesystem>

#include "core/fail.h"
#include "core/to_size.h"
#include "io/runs/adapter.h"
#include "io/weights/npy.h"

namespace qkv {

Teacher::Teacher(const std::string& path) : path_(path) {
  if (std::filesystem::is_directory(path)) {
    run_ = std::make_unique<const Embedder>(path);
    width_ = run_->width();
    return;
  }
  file_.emplace(path);
  array_ = parse_npy(file_->bytes(), path);
  if (array_.dtype != DType::f32 || array_.shape.size() != 2 || array_.shape[1] < 1)
    fail("{}: must have vectors of float32, [vectors, components] (has {})", path,
         describe(array_.dtype, array_.shape));
  width_ = array_.shape[1];
}

std::string Teacher::hash() const { return sha256_of_file(is_file() ? path_ : weights_of(RunDirectory(path_))); }

std::vector<float> Teacher::read(std::span<const int64_t> numbers) const {
  std::vector<float> values(numbers.size() * to_size(width_));
  const size_t bytes = to_size(width_) * sizeof(float);
  for (size_t i = 0; i < numbers.size(); i++) {
    if (numbers[i] < 0 || numbers[i] >= vectors())
      fail("{}: has {} vectors (vector {} is needed)", path_, vectors(), numbers[i] + 1);
    float* vector = values.data() + i * to_size(width_);
    std::memcpy(vector, array_.data.data() + to_size(numbers[i]) * bytes, bytes);
    if (!all_finite({vector, to_size(width_)})) fail("{}: vector {} is not finite", path_, numbers[i] + 1);
  }
  return values;
}

}  // namespace qkv
