#include "convert/formats/foreign_tensors.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

bool holds_numbers(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::i8:
    case DType::i16:
      return true;
    default:
      return is_in_blocks(dtype);
  }
}

bool is_integer(DType dtype) { return dtype == DType::i8 || dtype == DType::i16; }

// The scale of int16 weights in old files, which hold none.
constexpr float kDefaultScale = 1000;

std::string scale_name(const std::string& name) { return name + "_scale"; }

// Whether rows of two arrays have the same shape.
bool rows_match(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::ranges::equal(a.subspan(1), b.subspan(1));
}

bool equal(const TensorView* a, const TensorView* b) {
  if (!a || !b || a->dtype != b->dtype || a->shape != b->shape) return false;
  return a->data.data() == b->data.data() || std::ranges::equal(a->data, b->data);
}

}  // namespace

std::string in_file(const std::string& path, const std::string& name) {
  return fmt::format("{}: tensor {}", path, excerpt(name));
}

ForeignTensors::ForeignTensors(std::string path, std::map<std::string, TensorView> tensors)
    : path_(std::move(path)), tensors_(std::move(tensors)) {}

const TensorView* ForeignTensors::find(const std::string& name) const {
  const auto place = tensors_.find(name);
  return place == tensors_.end() ? nullptr : &place->second;
}

const TensorView& ForeignTensors::at(const std::string& name) const {
  const TensorView* tensor = find(name);
  if (!tensor) fail("{} is missing", in_file(path_, name));
  if (tensor->data.empty()) fail("{}: {} is empty", in_file(path_, name), describe(tensor->dtype, tensor->shape));
  return *tensor;
}

std::vector<int64_t> ForeignTensors::shape(const std::string& name, size_t rank) const {
  const TensorView& tensor = at(name);
  if (tensor.shape.size() != rank)
    fail("{}: must have {} dimensions (is {})", in_file(path_, name), rank, describe(tensor.dtype, tensor.shape));
  return tensor.shape;
}

int64_t ForeignTensors::count(const std::string& prefix, const std::string& suffix) const {
  int64_t n = 0;
  while (has(fmt::format("{}{}{}", prefix, n, suffix))) n++;
  return n;
}

std::span<const std::byte> ForeignTensors::scales_of(const std::string& name, const TensorView& values) {
  static const float default_scale = kDefaultScale;
  const TensorView* scales = find(scale_name(name));
  if (!is_integer(values.dtype)) return {};
  if (!scales && values.dtype == DType::i16) return std::as_bytes(std::span(&default_scale, 1));
  if (!scales)
    fail("{}: {} without the scale {}", in_file(path_, name), describe(values.dtype, values.shape),
         excerpt(scale_name(name)));
  used_.insert(scale_name(name));
  const size_t rows = values.shape.empty() ? 1 : to_size(values.shape[0]);
  const size_t count = scales->data.size() / sizeof(float);
  if (scales->dtype != DType::f32 || (count != 1 && count != rows))
    fail("{}: must be F32 with 1 or {} numbers (is {})", in_file(path_, scale_name(name)), rows,
         describe(scales->dtype, scales->shape));
  return scales->data;
}

Origin ForeignTensors::whole(const std::string& name) {
  const TensorView& tensor = at(name);
  if (!holds_numbers(tensor.dtype))
    fail("{}: must hold numbers (is {})", in_file(path_, name), describe(tensor.dtype, tensor.shape));
  if (tensor.shape.empty()) fail("{}: must be an array (is a single number)", in_file(path_, name));
  used_.insert(name);
  return {name, tensor, scales_of(name, tensor), tensor.shape, {}};
}

void ForeignTensors::use(const std::string& parameter, const std::string& name, TensorPart part) {
  Origin origin = whole(name);
  const TensorView& tensor = origin.tensor;
  if (part.transposed && (is_integer(tensor.dtype) || is_in_blocks(tensor.dtype)))
    fail("{}: must hold floats (is {})", in_file(path_, name), describe(tensor.dtype, tensor.shape));
  if (origin.scales.size() > sizeof(float) && !rows_match(part.shape, tensor.shape))
    fail("{}: has a scale per row and cannot be read in another shape (is {})", in_file(path_, name),
         describe(tensor.dtype, tensor.shape));
  origin.shape = std::move(part.shape);
  origin.rows = part.rows;
  origin.transposed = part.transposed;
  origin.factor = part.factor;
  origin.offset = part.offset;
  if (!origins_.emplace(parameter, std::move(origin)).second)
    fail("{}: {} already has an origin", in_file(path_, name), parameter);
}

void ForeignTensors::add_first_row(const std::string& parameter, const std::string& name) {
  Origin& origin = origins_.at(parameter);
  const int64_t columns = shape(name, 2)[1];
  if (origin.shape.size() != 2 || origin.shape[1] != columns)
    fail("{}: must have as many columns as {} (is {})", in_file(path_, name), excerpt(origin.name),
         describe(at(name).dtype, at(name).shape));
  origin.addend = std::make_shared<const Origin>(whole(name));
}

void ForeignTensors::add_zeros(const std::string& parameter, int64_t size) {
  origins_.emplace(
      parameter,
      Origin{.name = parameter, .tensor = {DType::f32, {size}, {}}, .scales = {}, .shape = {size}, .rows = {}});
}

void ForeignTensors::ignore(const std::string& name) {
  used_.insert(name);
  used_.insert(scale_name(name));
}

bool ForeignTensors::same(const std::string& a, const std::string& b) const {
  const TensorView *scale = find(scale_name(a)), *other = find(scale_name(b));
  return equal(find(a), find(b)) && ((!scale && !other) || equal(scale, other));
}

void ForeignTensors::refuse_unused() const {
  for (const auto& [name, tensor] : tensors_)
    if (!used_.contains(name))
      fail("{}: {} is not part of the model", in_file(path_, name), describe(tensor.dtype, tensor.shape));
}

}  // namespace qkv
