#include "io/weights/quantized_weights.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/arena.h"
#include "core/fail.h"
#include "core/float16.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/int4_linear.h"
#include "ops/row_linear.h"

namespace qkv {
namespace {

// Blocks of 4-bit weights come first, which keeps those of one layer adjacent, then 8-bit weights, then floats.
struct Tensors {
  std::vector<NamedTensor> int4, int8, floats;

  void add(const Parameter<float>& p) {
    const size_t size = to_size(p.size());
    if (const Int4Matrix& W = p.int4; W.blocks) {
      int4.push_back({p.name, {DType::u8, int4_shape(p), {W.blocks, to_size(W.bytes())}}});
    } else if (p.int8.values.data) {
      int8.push_back({p.name, {DType::i8, p.shape, std::as_bytes(std::span(p.int8.values.data, size))}});
      floats.push_back({int8_scale(p.name), f32_tensor({p.shape[0]}, {p.int8.scale, to_size(p.shape[0])})});
    } else {
      floats.push_back({p.name, f32_tensor(p.shape, {p.value, size})});
    }
  }
};

// Tensors of a file that are used as one array.

// Returns the first byte of all parts, one after the other: in the file if each begins where the previous one ends,
// else in a copy. `parts` must not be empty.
const std::byte* in_one_piece(std::span<const std::span<const std::byte>> parts, Arena& copy) {
  int64_t bytes = 0;
  const std::byte* next = parts.front().data();
  bool adjacent = true;
  for (const auto& part : parts) {
    adjacent = adjacent && part.data() == next;
    next = part.data() + part.size();
    bytes += std::ssize(part);
  }
  if (adjacent) return parts.front().data();
  std::byte* const first = copy.take<std::byte>(bytes);
  std::byte* to = first;
  for (const auto& part : parts) to = std::ranges::copy(part, to).out;
  return first;
}

struct Int4Weights {
  std::shared_ptr<const Safetensors> file;
  Arena copy;  // of all blocks, if they are not adjacent in the file
};

bool has_fitting_shape(const Parameter<float>& p) {
  return p.least_bits <= 4 && p.shape[0] % Int4Matrix::kRows == 0 && p.shape[1] % Int4Matrix::kColumns == 0;
}

Int4Matrix view(const Parameter<float>& p, const std::byte* blocks) { return {blocks, p.shape[0], p.shape[1]}; }

// Returns the end of the run of parameters from `first` that are computed as one matrix.
size_t end_of_joined(const ParameterList<float>& list, size_t first) {
  size_t end = first + 1;
  while (end < list.all().size() && list.all()[end].joined) end++;
  return end;
}

// Calls f(first, last) for every layer of matrices that may have 4 bits.
template <class F>
void for_each_layer(const ParameterList<float>& list, const F& f) {
  const auto& all = list.all();
  for (size_t first = 0, end = 0; first < all.size(); first = end) {
    end = end_of_joined(list, first);
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(first);
    if (std::all_of(at, all.begin() + static_cast<std::ptrdiff_t>(end), has_fitting_shape)) f(first, end);
  }
}

bool are_scales_finite(std::span<const std::byte> blocks) {
  constexpr uint16_t kExponent = 0x7C00;
  std::atomic<bool> finite = true;
  parallel_blocks(std::ssize(blocks) / Int4Matrix::kBlockBytes, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      uint16_t scales[Int4Matrix::kScaleBytes / 2];
      std::memcpy(scales, blocks.data() + b * Int4Matrix::kBlockBytes, sizeof scales);
      if (std::ranges::any_of(scales, [](uint16_t s) { return (s & kExponent) == kExponent; })) finite = false;
    }
  });
  return finite;
}

std::span<const std::byte> blocks_of(const Safetensors& file, const std::string& path, const Parameter<float>& p) {
  const TensorView* tensor = file.find(p.name);
  const std::vector<int64_t> shape = int4_shape(p);
  if (tensor->dtype != DType::u8 || tensor->shape != shape)
    fail("{}: tensor \"{}\" must be {} (is {})", path, p.name, describe(DType::u8, shape),
         describe(tensor->dtype, tensor->shape));
  if (!are_scales_finite(tensor->data)) fail("{}: tensor \"{}\" contains a scale that is not finite", path, p.name);
  return tensor->data;
}

void use(ParameterList<float>& list, const std::vector<size_t>& chosen, const std::byte* blocks,
         const std::shared_ptr<const Int4Weights>& weights) {
  for (const size_t i : chosen) {
    const Int4Matrix matrix = view(list.all()[i], blocks);
    list.use_int4(i, matrix, weights);
    blocks += matrix.bytes();
  }
}

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

std::vector<int64_t> int4_shape(const Parameter<float>& p) {
  return {p.shape[0] / Int4Matrix::kRows, p.shape[1] / Int4Matrix::kColumns, Int4Matrix::kBlockBytes};
}

bool is_int4(const Safetensors& file, const Parameter<float>& p) {
  const TensorView* tensor = file.find(p.name);
  return p.least_bits <= 4 && tensor && tensor->dtype == DType::u8;
}

void use_int4(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list) {
  std::vector<size_t> chosen;
  std::vector<std::span<const std::byte>> parts;
  for_each_layer(list, [&](size_t first, size_t end) {
    const auto& all = list.all();
    size_t found = 0;
    for (size_t i = first; i < end; i++) found += is_int4(*file, all[i]);
    if (found == 0) return;
    for (size_t i = first; i < end; i++) {
      if (!is_int4(*file, all[i]))
        fail("{}: tensor \"{}\" must have 4 bits, like the others of its layer", path, all[i].name);
      chosen.push_back(i);
      parts.push_back(blocks_of(*file, path, all[i]));
    }
  });
  if (chosen.empty()) return;
  const auto weights = std::make_shared<Int4Weights>();
  weights->file = file;
  use(list, chosen, in_one_piece(parts, weights->copy), weights);
}

void quantize_int4(ParameterList<float>& list) {
  std::vector<size_t> chosen;
  int64_t bytes = 0;
  for_each_layer(list, [&](size_t first, size_t end) {
    for (size_t i = first; i < end && !list.all()[first].is_quantized(); i++) {
      chosen.push_back(i);
      bytes += view(list.all()[i], nullptr).bytes();
    }
  });
  if (chosen.empty()) return;
  const auto weights = std::make_shared<Int4Weights>();
  std::byte* const blocks = weights->copy.take<std::byte>(bytes);
  std::byte* next = blocks;
  for (const size_t i : chosen) {
    const Int4Matrix matrix = view(list.all()[i], next);
    parallel_blocks(matrix.rows, Int4Matrix::kRows, [&](int64_t begin, int64_t end) {
      quantize_int4(list.all()[i].matrix().row_range(begin, end), next + (matrix.row_blocks(begin) - matrix.blocks));
    });
    next += matrix.bytes();
  }
  use(list, chosen, blocks, weights);
}

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

void quantize(ParameterList<float>& list, int bits) {
  if (bits == 4) quantize_int4(list);
  quantize_int8(list);
}

void save_quantized(const std::string& path, const ParameterList<float>& list) {
  Tensors tensors;
  for (const auto& p : list.all()) tensors.add(p);
  std::vector<NamedTensor> all = std::move(tensors.int4);
  all.insert(all.end(), tensors.int8.begin(), tensors.int8.end());
  all.insert(all.end(), tensors.floats.begin(), tensors.floats.end());
  write_safetensors(path, all, {{"format", "qkv"}});
}

void use_quantized(const std::string& path, const std::shared_ptr<const Safetensors>& file,
                   ParameterList<float>& list) {
  use_int4(path, file, list);
  use_int8(path, file, list);
}

int64_t count_int8(const ParameterList<float>& list) {
  return std::ranges::count_if(list.all(), [](const auto& p) { return p.int8.values.data != nullptr; });
}

int64_t count_int4(const ParameterList<float>& list) {
  return std::ranges::count_if(list.all(), [](const auto& p) { return p.int4.blocks != nullptr; });
}

bool is_quantized(const ParameterList<float>& list) { return count_int8(list) + count_int4(list) > 0; }

int64_t weight_bytes(const Parameter<float>& p) {
  constexpr int64_t kFloat = sizeof(float), kOfRow = sizeof(float) + sizeof(int32_t);
  if (p.int4.blocks) return p.int4.bytes();
  return p.int8.values.data ? p.size() + p.shape[0] * kOfRow : p.size() * kFloat;
}

int64_t weight_bytes(const ParameterList<float>& list) {
  int64_t bytes = 0;
  for (const auto& p : list.all()) bytes += weight_bytes(p);
  return bytes;
}

}  // namespace qkv
