#include "io/weights.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/fail.h"
#include "io/safetensors.h"

namespace qkv {

void save_weights(const std::string& path, const ParameterList<float>& list, std::span<const float> values) {
  std::vector<NamedTensor> tensors;
  for (const auto& p : list.all()) {
    const auto part =
        values.subspan(static_cast<size_t>(p.value - list.values().data()), static_cast<size_t>(p.size()));
    tensors.push_back({p.name, f32_tensor(p.shape, part)});
  }
  write_safetensors(path, tensors, {{"format", "qkv"}});
}

void load_weights(const std::string& path, const ParameterList<float>& list, std::span<float> values) {
  const Safetensors file = Safetensors::open(path);
  for (const auto& p : list.all()) {
    const auto to = values.subspan(static_cast<size_t>(p.value - list.values().data()), static_cast<size_t>(p.size()));
    file.read(p.name, p.shape, to);
    if (!std::all_of(to.begin(), to.end(), [](float x) { return std::isfinite(x); }))
      fail("{}: tensor \"{}\" holds a number that is not finite", path, p.name);
  }
  std::set<std::string> known;
  for (const auto& p : list.all()) known.insert(p.name);
  for (const std::string& name : file.names())
    if (!known.contains(name)) fail("{}: tensor \"{}\" is not part of the model", path, name);
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
