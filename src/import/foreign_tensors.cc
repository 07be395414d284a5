#include "import/foreign_tensors.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"

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
      return false;
  }
}

size_t item_size(DType dtype) { return static_cast<size_t>(*byte_count(dtype, {})); }

bool is_integer(DType dtype) { return dtype == DType::i8 || dtype == DType::i16; }

// int16 weights of old files have no scale of their own.
constexpr float kDefaultScale = 1000;

}  // namespace

std::string in_file(const std::string& path, const std::string& name) {
  return fmt::format("{}: tensor {}", path, excerpt(name));
}

Origin part_of(const Origin& origin, Rows rows) {
  Origin part = origin;
  const size_t begin = static_cast<size_t>(rows.begin), count = static_cast<size_t>(rows.end - rows.begin);
  part.values.shape[0] = rows.end - rows.begin;
  if (origin.columns > 0) {
    part.values.data = origin.values.data.subspan(begin * item_size(origin.values.dtype));
    return part;
  }
  const size_t row_bytes = origin.values.data.size() / static_cast<size_t>(origin.values.shape[0]);
  part.values.data = origin.values.data.subspan(begin * row_bytes, count * row_bytes);
  if (origin.scales.size() > sizeof(float))
    part.scales = origin.scales.subspan(begin * sizeof(float), count * sizeof(float));
  return part;
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
    fail("{}: found {}, wanted {} dimensions", in_file(path_, name), describe(tensor.dtype, tensor.shape), rank);
  return tensor.shape;
}

int64_t ForeignTensors::count(const std::string& prefix, const std::string& suffix) const {
  int64_t n = 0;
  while (has(fmt::format("{}{}{}", prefix, n, suffix))) n++;
  return n;
}

std::span<const std::byte> ForeignTensors::scales_of(const std::string& name, const TensorView& values) {
  static const float default_scale = kDefaultScale;
  const TensorView* scales = find(name + "_scale");
  if (!is_integer(values.dtype)) return {};
  if (!scales && values.dtype == DType::i16) return std::as_bytes(std::span(&default_scale, 1));
  if (!scales)
    fail("{}: {} without the scale {}", in_file(path_, name), describe(values.dtype, values.shape),
         excerpt(name + "_scale"));
  used_.insert(name + "_scale");
  const size_t rows = values.shape.empty() ? 1 : static_cast<size_t>(values.shape[0]);
  const size_t count = scales->data.size() / sizeof(float);
  if (scales->dtype != DType::f32 || (count != 1 && count != rows))
    fail("{}: found {}, wanted F32, one or {} of them", in_file(path_, name + "_scale"),
         describe(scales->dtype, scales->shape), rows);
  return scales->data;
}

void ForeignTensors::use(const std::string& parameter, const std::string& name, Rows rows) {
  const TensorView& values = at(name);
  if (!holds_numbers(values.dtype))
    fail("{}: found {}, wanted numbers", in_file(path_, name), describe(values.dtype, values.shape));
  if (values.shape.empty()) fail("{}: found a single number, wanted an array", in_file(path_, name));
  const Origin whole{name, values, scales_of(name, values)};
  if (rows.end < 0) rows.end = values.shape[0];
  if (rows.end > values.shape[0])
    fail("{}: found {}, wanted at least {} rows", in_file(path_, name), describe(values.dtype, values.shape), rows.end);
  used_.insert(name);
  add_origin(parameter, part_of(whole, rows));
}

void ForeignTensors::add_origin(const std::string& parameter, Origin origin) {
  const std::string name = origin.name;
  if (!origins_.emplace(parameter, std::move(origin)).second)
    fail("{}: a second origin of {}", in_file(path_, name), parameter);
}

int64_t ForeignTensors::share(const std::string& name, size_t dimension, size_t parts) const {
  const TensorView& tensor = at(name);
  const int64_t count = static_cast<int64_t>(parts);
  if (tensor.shape.size() <= dimension || tensor.shape[dimension] % count != 0)
    fail("{}: found {}, wanted {} parts of the same size", in_file(path_, name), describe(tensor.dtype, tensor.shape),
         parts);
  return tensor.shape[dimension] / count;
}

void ForeignTensors::use_rows(const std::vector<std::string>& parameters, const std::string& name) {
  if (parameters.size() == 1) return use(parameters.front(), name);
  const int64_t rows = share(name, 0, parameters.size());
  int64_t begin = 0;
  for (const std::string& parameter : parameters) {
    use(parameter, name, {begin, begin + rows});
    begin += rows;
  }
}

void ForeignTensors::use_columns(const std::vector<std::string>& parameters, const std::string& name) {
  const std::vector<int64_t> sizes = shape(name, 2);
  const TensorView& tensor = at(name);
  if (!holds_numbers(tensor.dtype) || is_integer(tensor.dtype))
    fail("{}: found {}, wanted floats", in_file(path_, name), describe(tensor.dtype, sizes));
  const int64_t columns = share(name, 1, parameters.size());
  Origin whole{name, tensor, {}, sizes[1]};
  whole.values.shape = {sizes[1], sizes[0]};
  used_.insert(name);
  int64_t begin = 0;
  for (const std::string& parameter : parameters) {
    add_origin(parameter, part_of(whole, {begin, begin + columns}));
    begin += columns;
  }
}

void ForeignTensors::use_as(const std::string& parameter, const std::string& name, std::vector<int64_t> shape) {
  const TensorView& found = at(name);
  if (byte_count(found.dtype, shape) != found.data.size())
    fail("{}: found {}, wanted {}", in_file(path_, name), describe(found.dtype, found.shape),
         describe(found.dtype, shape));
  use(parameter, name);
  Origin& origin = origins_.at(parameter);
  if (origin.scales.size() > sizeof(float) && shape[0] != found.shape[0])
    fail("{}: found a scale for each row of {}, wanted {}", in_file(path_, name), describe(found.dtype, found.shape),
         describe(found.dtype, shape));
  origin.values.shape = std::move(shape);
}

bool ForeignTensors::same(const std::string& a, const std::string& b) const {
  const TensorView *first = find(a), *second = find(b);
  return first && second && first->dtype == second->dtype && first->shape == second->shape &&
         std::ranges::equal(first->data, second->data);
}

void ForeignTensors::refuse_others() const {
  for (const auto& [name, tensor] : tensors_)
    if (!used_.contains(name))
      fail("{}: {} has no place in the model", in_file(path_, name), describe(tensor.dtype, tensor.shape));
}

}  // namespace qkv
