#include "convert/formats/ctranslate2_attributes.h"

#include <cmath>
#include <cstring>

namespace qkv {
namespace {

constexpr size_t kMaxText = 1000;  // bytes
constexpr double kMaxInteger = 1 << 24;

template <class T>
T load(const TensorView& tensor) {
  T value;
  std::memcpy(&value, tensor.data.data(), sizeof value);
  return value;
}

}  // namespace

std::optional<double> CTranslate2Attributes::number(const std::string& name) {
  const TensorView* tensor = tensors_.find(name);
  if (!tensor) return {};
  tensors_.ignore(name);
  const bool single = tensor->shape.size() <= 1 && byte_count(tensor->dtype, {}) == tensor->data.size();
  if (single && tensor->dtype == DType::f32) return load<float>(*tensor);
  if (single && tensor->dtype == DType::i32) return load<int32_t>(*tensor);
  if (single && tensor->dtype == DType::i16) return load<int16_t>(*tensor);
  if (single && tensor->dtype == DType::i8) return load<int8_t>(*tensor);
  fail("{}: must be a single number (is {})", in_file(tensors_.path(), name), describe(tensor->dtype, tensor->shape));
}

std::optional<double> CTranslate2Attributes::number(const std::string& side, const std::string& name) {
  const auto own = number(side + "/" + name);
  return own || file_.revision >= 5 ? own : number(name);
}

int64_t CTranslate2Attributes::integer(const std::string& side, const std::string& name, int64_t otherwise) {
  const double value = number(side, name).value_or(static_cast<double>(otherwise));
  if (!(std::abs(value) <= kMaxInteger && value == std::nearbyint(value)))
    fail("{}: must be an integer of at most {} (is {})", in_file(tensors_.path(), side + "/" + name), kMaxInteger,
         value);
  return static_cast<int64_t>(value);
}

std::string CTranslate2Attributes::text(const std::string& name, const std::string& otherwise) {
  const TensorView* tensor = tensors_.find(name);
  if (!tensor) return otherwise;
  tensors_.ignore(name);
  if (tensor->dtype != DType::i8 || tensor->data.size() > kMaxText)
    fail("{}: must be a text of at most {} bytes (is {})", in_file(tensors_.path(), name), kMaxText,
         describe(tensor->dtype, tensor->shape));
  return {reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size()};
}

}  // namespace qkv
