#include "io/weights/int8_weights.h"

#include <algorithm>
#include <vector>

#include "core/arena.h"
#include "core/fail.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "io/weights/adjacent_tensors.h"
#include "ops/row_linear.h"

namespace qkv {
namespace {

// The 8-bit matrices one after the other, because neighbouring parameters are used as one matrix.
struct Int8Weights {
  std::shared_ptr<const Safetensors> file;
  Arena copy;  // of all values, if they are not adjacent in the file
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

constexpr int64_t kMaxColumns = 65536;  // so that a sum of products of bytes fits into 32 bits

bool may_be_int8(const Parameter<float>& p) {
  return p.least_bits <= 8 && p.shape[1] % 4 == 0 && p.shape[1] <= kMaxColumns;
}

std::span<const std::byte> values_of(const Safetensors& file, const std::string& path, const Parameter<float>& p) {
  const TensorView& tensor = *file.find(p.name);
  if (tensor.shape != p.shape)
    fail("{}: tensor \"{}\" must be {} (is {})", path, p.name, describe(tensor.dtype, p.shape),
         describe(tensor.dtype, tensor.shape));
  if (!may_be_int8(p))
    fail("{}: tensor \"{}\": the number of 8-bit columns must be a multiple of 4, at most {} (is {})", path, p.name,
         kMaxColumns, p.shape[1]);
  return tensor.data;
}

// Throws Error unless all matrices that may have 8 bits do: neighbours are used as one matrix.
void reject_floats(const std::string& path, const ParameterList<float>& list, const std::string& int8_name) {
  for (const auto& p : list.all())
    if (may_be_int8(p) && !p.is_quantized())
      fail("{}: tensor \"{}\" must be {} like \"{}\" (is {})", path, p.name, describe(DType::i8, p.shape), int8_name,
           describe(DType::f32, p.shape));
}

// Makes the list use the values of the chosen parameters, which lie one after the other.
void use(ParameterList<float>& list, const std::vector<size_t>& chosen, const int8_t* values,
         std::shared_ptr<Int8Weights> weights) {
  weights->sums.resize(weights->scales.size());
  const float* scales = weights->scales.data();
  int32_t* sums = weights->sums.data();
  for (const size_t i : chosen) {
    const int64_t out = list.all()[i].shape[0], in = list.all()[i].shape[1];
    const Matrix<const int8_t> W(values, out, in);
    sum_rows(W, sums);
    list.use_int8(i, {W, scales, sums}, weights);
    values += out * in;
    scales += out;
    sums += out;
  }
}

}  // namespace

std::string int8_scale(const std::string& name) { return name + "_scale"; }

bool is_int8(const Safetensors& file, const Parameter<float>& p) {
  const TensorView* tensor = file.find(p.name);
  return p.least_bits <= 8 && tensor && tensor->dtype == DType::i8;
}

void use_int8(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list) {
  std::vector<size_t> chosen;
  std::vector<std::span<const std::byte>> parts;
  for (size_t i = 0; i < list.all().size(); i++) {
    const Parameter<float>& p = list.all()[i];
    if (!is_int8(*file, p)) continue;
    parts.push_back(values_of(*file, path, p));
    chosen.push_back(i);
  }
  if (chosen.empty()) return;
  const auto weights = std::make_shared<Int8Weights>();
  weights->file = file;
  const auto* values = reinterpret_cast<const int8_t*>(in_one_piece(parts, weights->copy));
  for (const size_t i : chosen) {
    const Parameter<float>& p = list.all()[i];
    std::vector<float> scales(to_size(p.shape[0]));
    file->read(int8_scale(p.name), {p.shape[0]}, scales);
    if (!all_finite(scales)) fail("{}: tensor \"{}\" contains a number that is not finite", path, int8_scale(p.name));
    weights->scales.insert(weights->scales.end(), scales.begin(), scales.end());
  }
  use(list, chosen, values, weights);
  reject_floats(path, list, list.all()[chosen.front()].name);
}

void quantize_int8(ParameterList<float>& list) {
  std::vector<size_t> chosen;
  int64_t numbers = 0, rows = 0;
  for (size_t i = 0; i < list.all().size(); i++) {
    const Parameter<float>& p = list.all()[i];
    if (!may_be_int8(p) || p.is_quantized()) continue;
    chosen.push_back(i);
    numbers += p.size();
    rows += p.shape[0];
  }
  if (chosen.empty()) return;
  const auto weights = std::make_shared<Int8Weights>();
  int8_t* const values = weights->copy.take<int8_t>(numbers);
  weights->scales.resize(to_size(rows));
  int8_t* value = values;
  float* scale = weights->scales.data();
  for (const size_t i : chosen) {
    const Matrix<const float> W = list.all()[i].matrix();
    parallel_blocks(W.rows, 64, [&](int64_t begin, int64_t end) {
      quantize_rows(W.row_range(begin, end), value + begin * W.cols, scale + begin);
    });
    value += W.rows * W.cols;
    scale += W.rows;
  }
  use(list, chosen, values, weights);
}

}  // namespace qkv
