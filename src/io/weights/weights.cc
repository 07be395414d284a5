#include "io/weights/weights.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/fail.h"
#include "core/to_size.h"
#include "io/weights/quantized_weights.h"
#include "io/weights/safetensors.h"

namespace qkv {
namespace {

// Returns the part of `values`, which have the layout of `list`, that holds a parameter.
template <class T>
std::span<T> part_of(const Parameter<float>& p, const ParameterList<float>& list, std::span<T> values) {
  return values.subspan(to_size(p.value - list.values().data()), to_size(p.size()));
}

void read_parameter(const Safetensors& file, const std::string& path, const Parameter<float>& p, std::span<float> to) {
  file.read(p.name, p.shape, to);
  if (!all_finite(to)) fail("{}: tensor \"{}\" contains a number that is not finite", path, p.name);
}

void reject_other_names(const Safetensors& file, const std::string& path, const ParameterList<float>& list) {
  std::set<std::string> known;
  for (const auto& p : list.all()) {
    known.insert(p.name);
    if (is_int8(file, p)) known.insert(int8_scale(p.name));
  }
  for (const std::string& name : file.names())
    if (!known.contains(name)) fail("{}: tensor \"{}\" is not part of the model", path, name);
}

// Returns the values of all parameters in the file if they lie in the order of the list without gaps, else nothing.
std::span<const float> values_in_place(const Safetensors& file, const ParameterList<float>& list) {
  const std::byte *first = nullptr, *next = nullptr;
  for (const auto& p : list.all()) {
    const TensorView* tensor = file.find(p.name);
    if (!tensor || tensor->dtype != DType::f32 || tensor->shape != p.shape) return {};
    if (!first) first = next = tensor->data.data();
    if (tensor->data.data() != next) return {};
    next += tensor->data.size();
  }
  if (reinterpret_cast<uintptr_t>(first) % alignof(float) != 0) return {};
  return {reinterpret_cast<const float*>(first), to_size(list.size())};
}

}  // namespace

void save_weights(const std::string& path, const ParameterList<float>& list, std::span<const float> values) {
  save_weights(path, list, values, 0, std::ssize(list.all()));
}

void save_weights(const std::string& path, const ParameterList<float>& list, std::span<const float> values,
                  int64_t begin, int64_t end, const Metadata& metadata) {
  std::vector<NamedTensor> tensors;
  for (int64_t i = begin; i < end; i++) {
    const Parameter<float>& p = list.all()[to_size(i)];
    tensors.push_back({p.name, f32_tensor(p.shape, part_of(p, list, values))});
  }
  Metadata all = {{"format", "qkv"}};
  all.insert(metadata.begin(), metadata.end());
  write_safetensors(path, tensors, all);
}

void load_weights(const std::string& path, const ParameterList<float>& list, std::span<float> values) {
  load_weights(path, list, values, 0, std::ssize(list.all()));
}

void load_weights(const std::string& path, const ParameterList<float>& list, std::span<float> values, int64_t begin,
                  int64_t end) {
  const Safetensors file = Safetensors::open(path);
  for (int64_t i = begin; i < end; i++) {
    const Parameter<float>& p = list.all()[to_size(i)];
    read_parameter(file, path, p, part_of(p, list, values));
  }
  reject_other_names(file, path, list);
}

void average_weights(std::span<const std::string> paths, const ParameterList<float>& list, std::span<float> values,
                     Arena& arena) {
  std::vector<Safetensors> files;
  for (const std::string& path : paths) {
    files.push_back(Safetensors::open(path));
    reject_other_names(files.back(), path, list);
  }
  for (const auto& p : list.all()) {
    const Arena::Scope scope(arena);
    const std::span<float> part = part_of(p, list, values);
    double* sum = arena.zeros<double>(1, p.size()).data;
    for (size_t i = 0; i < files.size(); i++) {
      read_parameter(files[i], paths[i], p, part);
      for (size_t e = 0; e < part.size(); e++) sum[e] += static_cast<double>(part[e]);
    }
    for (size_t e = 0; e < part.size(); e++) part[e] = static_cast<float>(sum[e] / static_cast<double>(files.size()));
  }
}

std::unique_ptr<Transformer<float>> load_model(const std::string& path, const ModelConfig& config,
                                               const ItemInputs& items) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) fail("{}: {}", path, error.message());
  const int64_t parameters = count_parameters(config, items);
  if (bytes < static_cast<uintmax_t>(parameters / 2))  // 4 bits each, at least
    fail("{}: has {} bytes, too few for the {} parameters of the model", path, bytes, parameters);
  auto model = std::make_unique<Transformer<float>>(config, items);
  ParameterList<float>& list = model->parameters();
  const auto file = std::make_shared<const Safetensors>(Safetensors::open(path));
  reject_other_names(*file, path, list);
  if (const auto values = values_in_place(*file, list); !values.empty() && all_finite(values)) {
    list.use(values, file);
    return model;
  }
  use_quantized(path, file, list);
  list.close_gaps();
  for (const auto& p : list.all())
    if (p.value) read_parameter(*file, path, p, part_of(p, list, list.values()));
  return model;
}

}  // namespace qkv
