#include "convert/peft_adapter.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "convert/model_files.h"
#include "convert/settings.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "io/weights/safetensors.h"

namespace qkv {
namespace {

constexpr std::string_view kPrefix = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight",
                           kWeight = ".weight";

// Throws Error, naming the field, for features that are not supported.
void check_config(const Settings& config) {
  if (const std::string type = config.text("peft_type"); type != "LORA")
    fail("{}: peft_type must be LORA (is {})", config.where(), excerpt(type));
  if (const std::string bias = config.text("bias", "none"); bias != "none")
    fail("{}: bias must be none (is {})", config.where(), excerpt(bias));
  for (const char* name : {"use_dora", "lora_bias", "use_qalora", "megatron_config", "trainable_token_indices",
                           "modules_to_save", "alpha_pattern", "target_parameters", "layer_replication", "use_bdlora",
                           "velora_config", "kasa_config", "arrow_config", "alora_invocation_tokens"}) {
    const nlohmann::json* value = config.find(name);
    const bool unset =
        !value || (value->is_boolean() && !value->get<bool>()) || (value->is_structured() && value->empty());
    if (!unset) fail("{}: {} is not supported (is {})", config.where(), name, excerpt(value->dump()));
  }
}

// Whether one module name is the end of the other: files of a bare model lack the prefix of a model with a head.
bool same_module(std::string_view a, std::string_view b) {
  if (a.size() < b.size()) std::swap(a, b);
  return a.ends_with(b) && (a.size() == b.size() || a[a.size() - b.size() - 1] == '.');
}

// Marks a whole matrix for reading and returns its shape.
std::vector<int64_t> use_matrix(ForeignTensors& tensors, const std::string& name) {
  const std::vector<int64_t> shape = tensors.shape(name, 2);
  tensors.use(name, name, {shape, {}, false});
  return shape;
}

}  // namespace

PeftAdapter::PeftAdapter(const std::string& directory, const Origins& model) {
  const ModelFiles files = ModelFiles::of_directory(directory);
  const Settings config(files.open_small("adapter_config.json")->text(), files.path("adapter_config.json"));
  check_config(config);
  const double alpha = config.number("lora_alpha");
  const bool root = config.flag("use_rslora", false);

  const Safetensors file = Safetensors::open(files.path("adapter_model.safetensors"));
  std::map<std::string, TensorView> views;
  for (const std::string& name : file.names()) views.emplace(name, *file.find(name));
  path_ = files.path("adapter_model.safetensors");
  ForeignTensors tensors(path_, std::move(views));
  for (const std::string& name : file.names()) {
    if (!name.ends_with(kA)) continue;
    if (!name.starts_with(kPrefix)) fail("{}: must begin with {}", in_file(tensors.path(), name), kPrefix);
    const std::string module = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kA.size());
    const std::string other = std::string(kPrefix) + module + std::string(kB);
    Update& update = updates_[module];
    const std::vector<int64_t> a = use_matrix(tensors, name), b = use_matrix(tensors, other);
    if (b[1] != a[0])
      fail("{}: must have {} columns, the rows of lora_A (has {})", in_file(tensors.path(), other), a[0], b[1]);
    update.rank = a[0], update.in = a[1], update.out = b[0];
    const auto r = static_cast<double>(update.rank);
    update.scale = alpha / (root ? std::sqrt(r) : r);
  }
  tensors.refuse_unused();
  if (updates_.empty()) fail("{}: has no tensor *{}", tensors.path(), kA);
  const Origins origins = tensors.take();
  for (auto& [module, update] : updates_) {
    const std::string name = std::string(kPrefix) + module;
    update.A.resize(to_size(update.rank * update.in));
    update.B.resize(to_size(update.out * update.rank));
    read_floats(origins.at(name + std::string(kA)), tensors.path(), 0, update.rank, update.A);
    read_floats(origins.at(name + std::string(kB)), tensors.path(), 0, update.out, update.B);
  }

  std::set<std::string> used;
  for (const auto& [parameter, origin] : model) {
    if (origin.shape.size() != 2 || !origin.name.ends_with(kWeight)) continue;
    const std::string own = origin.name.substr(0, origin.name.size() - kWeight.size());
    const auto exact = updates_.find(own);
    const auto found = exact != updates_.end()
                           ? exact
                           : std::ranges::find_if(updates_, [&](const auto& u) { return same_module(u.first, own); });
    if (found == updates_.end()) continue;
    const auto& [module, update] = *found;
    const std::vector<int64_t>& shape = origin.tensor.shape;
    const int64_t out = shape[origin.transposed ? 1 : 0], in = shape[origin.transposed ? 0 : 1];
    if (shape.size() != 2 || update.in != in || update.out != out)
      fail("{}: changes {} outputs of {} inputs; the model's {} has {} of {}",
           in_file(tensors.path(), std::string(kPrefix) + module + std::string(kA)), update.out, update.in, origin.name,
           out, in);
    used.insert(module);
    places_[parameter] = {&update, origin.rows};
  }
  for (const auto& [module, update] : updates_)
    if (!used.contains(module))
      fail("{}: the model has no linear layer {}",
           in_file(tensors.path(), std::string(kPrefix) + module + std::string(kA)), excerpt(module));
}

void PeftAdapter::add(const std::string& parameter, int64_t begin, int64_t end, std::span<float> rows) const {
  const auto place = places_.find(parameter);
  if (place == places_.end()) return;
  const Update& u = *place->second.update;
  std::vector<double> sum(to_size(u.in));
  for (int64_t row = begin; row < end; row++) {
    std::fill(sum.begin(), sum.end(), 0.0);
    const float* b = u.B.data() + place->second.rows.of(row) * u.rank;
    for (int64_t k = 0; k < u.rank; k++)
      for (int64_t i = 0; i < u.in; i++)
        sum[to_size(i)] += static_cast<double>(b[k]) * static_cast<double>(u.A[to_size(k * u.in + i)]);
    float* w = rows.data() + (row - begin) * u.in;
    for (int64_t i = 0; i < u.in; i++) {
      w[i] = static_cast<float>(static_cast<double>(w[i]) + u.scale * sum[to_size(i)]);
      if (!std::isfinite(w[i])) fail("{}: the adapter makes weights that are not finite", path_);
    }
  }
}

}  // namespace qkv
