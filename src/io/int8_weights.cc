#include "io/int8_weights.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/fail.h"
#include "core/threads.h"

namespace qkv {
namespace {

// The matrices in 8 bits one after the other, since neighbouring parameters are used as one matrix.
struct Int8Weights {
  std::shared_ptr<const Safetensors> file;
  std::vector<int8_t> copy;  // of all values, where those of the file are not neighbours
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

std::span<const int8_t> values_of(const Safetensors& file, const std::string& path, const Parameter<float>& p) {
  const TensorView& tensor = *file.find(p.name);
  if (tensor.shape != p.shape)
    fail("{}: tensor \"{}\" is {}, wanted {}", path, p.name, describe(tensor.dtype, tensor.shape),
         describe(tensor.dtype, p.shape));
  if (p.shape[1] % 4 != 0)
    fail("{}: tensor \"{}\" has {} columns of 8 bits, wanted a multiple of 4", path, p.name, p.shape[1]);
  return {reinterpret_cast<const int8_t*>(tensor.data.data()), tensor.data.size()};
}

bool can_be_int8(const Parameter<float>& p) { return p.quantizable && p.shape[1] % 4 == 0; }

}  // namespace

std::string int8_scale(const std::string& name) { return name + "_scale"; }

bool is_int8(const Safetensors& file, const Parameter<float>& p) {
  const TensorView* tensor = file.find(p.name);
  return p.quantizable && tensor && tensor->dtype == DType::i8;
}

void use_int8(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list) {
  std::vector<size_t> chosen;
  std::vector<std::span<const int8_t>> parts;
  size_t rows = 0;
  bool neighbours = true;
  for (size_t i = 0; i < list.all().size(); i++) {
    const Parameter<float>& p = list.all()[i];
    if (!is_int8(*file, p)) continue;
    const auto part = values_of(*file, path, p);
    neighbours = neighbours && (parts.empty() || part.data() == parts.back().data() + parts.back().size());
    parts.push_back(part);
    chosen.push_back(i);
    rows += static_cast<size_t>(p.shape[0]);
  }
  if (chosen.empty()) return;

  const auto weights = std::make_shared<Int8Weights>();
  weights->file = file;
  weights->scales.resize(rows);
  weights->sums.resize(rows);
  if (!neighbours)
    for (const auto& part : parts) weights->copy.insert(weights->copy.end(), part.begin(), part.end());
  const int8_t* values = neighbours ? parts.front().data() : weights->copy.data();
  float* scales = weights->scales.data();
  int32_t* sums = weights->sums.data();
  for (const size_t i : chosen) {
    const Parameter<float>& p = list.all()[i];
    const int64_t out = p.shape[0], in = p.shape[1];
    file->read(int8_scale(p.name), {out}, {scales, static_cast<size_t>(out)});
    if (!all_finite({scales, static_cast<size_t>(out)}))
      fail("{}: tensor \"{}\" holds a number that is not finite", path, int8_scale(p.name));
    parallel_blocks(out, 64, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; o++) sums[o] = std::accumulate(values + o * in, values + (o + 1) * in, 0);
    });
    list.use_int8(i, {{values, out, in}, scales, sums}, weights);
    values += out * in;
    scales += out;
    sums += out;
  }
}

void save_int8(const std::string& path, const ParameterList<float>& list) {
  struct Quantized {
    std::vector<int8_t> values;
    std::vector<float> scales;
  };
  std::vector<Quantized> matrices(list.all().size());
  parallel_for(std::ssize(matrices), [&](int64_t i) {
    const Parameter<float>& p = list.all()[static_cast<size_t>(i)];
    if (!can_be_int8(p)) return;
    Quantized& q = matrices[static_cast<size_t>(i)];
    q.values.resize(static_cast<size_t>(p.size()));
    q.scales.resize(static_cast<size_t>(p.shape[0]));
    quantize_rows(p.matrix(), q.values.data(), q.scales.data());
  });
  std::vector<NamedTensor> integers, floats;
  for (size_t i = 0; i < matrices.size(); i++) {
    const Parameter<float>& p = list.all()[i];
    if (can_be_int8(p)) {
      integers.push_back({p.name, {DType::i8, p.shape, std::as_bytes(std::span(matrices[i].values))}});
      floats.push_back({int8_scale(p.name), f32_tensor({p.shape[0]}, matrices[i].scales)});
    } else {
      floats.push_back({p.name, f32_tensor(p.shape, {p.value, static_cast<size_t>(p.size())})});
    }
  }
  integers.insert(integers.end(), floats.begin(), floats.end());
  write_safetensors(path, integers, {{"format", "qkv"}});
}

}  // namespace qkv
