#include "io/weights.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/fail.h"
#include "io/safetensors.h"

namespace qkv {
namespace {

// Where values of the layout of `list` hold a parameter.
template <class T>
std::span<T> part_of(const Parameter<float>& p, const ParameterList<float>& list, std::span<T> values) {
  return values.subspan(static_cast<size_t>(p.value - list.values().data()), static_cast<size_t>(p.size()));
}

void read_parameter(const Safetensors& file, const std::string& path, const Parameter<float>& p, std::span<float> to) {
  file.read(p.name, p.shape, to);
  if (!std::all_of(to.begin(), to.end(), [](float x) { return std::isfinite(x); }))
    fail("{}: tensor \"{}\" holds a number that is not finite", path, p.name);
}

void refuse_other_names(const Safetensors& file, const std::string& path, const ParameterList<float>& list) {
  std::set<std::string> known;
  for (const auto& p : list.all()) known.insert(p.name);
  for (const std::string& name : file.names())
    if (!known.contains(name)) fail("{}: tensor \"{}\" is not part of the model", path, name);
}

}  // namespace

void save_weights(const std::string& path, const ParameterList<float>& list, std::span<const float> values) {
  std::vector<NamedTensor> tensors;
  for (const auto& p : list.all()) tensors.push_back({p.name, f32_tensor(p.shape, part_of(p, list, values))});
  write_safetensors(path, tensors, {{"format", "qkv"}});
}

void load_weights(const std::string& path, const ParameterList<float>& list, std::span<float> values) {
  const Safetensors file = Safetensors::open(path);
  for (const auto& p : list.all()) read_parameter(file, path, p, part_of(p, list, values));
  refuse_other_names(file, path, list);
}

void average_weights(std::span<const std::string> paths, const ParameterList<float>& list, std::span<float> values,
                     Arena& arena) {
  std::vector<Safetensors> files;
  for (const std::string& path : paths) {
    files.push_back(Safetensors::open(path));
    refuse_other_names(files.back(), path, list);
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

std::unique_ptr<Transformer<float>> load_model(const std::string& path, const ModelConfig& config) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) fail("{}: {}", path, error.message());
  const int64_t parameters = count_parameters(config);
  if (bytes / sizeof(float) < static_cast<uintmax_t>(parameters))
    fail("{}: {} bytes cannot hold the {} parameters of the model", path, bytes, parameters);
  auto model = std::make_unique<Transformer<float>>(config);
  load_weights(path, model->parameters(), model->parameters().values());
  return model;
}

}  // namespace qkv
