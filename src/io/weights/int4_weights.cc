#include "io/weights/int4_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/fail.h"
#include "core/float16.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "io/weights/adjacent_tensors.h"
#include "ops/int4_linear.h"

namespace qkv {
namespace {

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

}  // namespace qkv
