#include "convert/formats/shards.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "convert/formats/foreign_tensors.h"
#include "convert/formats/torch_checkpoint.h"
#include "convert/settings.h"
#include "core/fail.h"
#include "core/json.h"
#include "io/weights/safetensors.h"

namespace qkv {
namespace {

constexpr std::string_view kIndexEnd = ".index.json";
constexpr const char* kWeightFiles[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                        "pytorch_model.bin.index.json"};
constexpr std::string_view kCheckpointEnds[] = {".bin", ".pt", ".pth", ".ckpt"};

const char* weights_in(const ModelFiles& from) {
  const auto* place = std::ranges::find_if(kWeightFiles, [&](const char* name) { return from.has(name); });
  return place == std::end(kWeightFiles) ? nullptr : *place;
}

bool is_checkpoint(const std::string& path) {
  return std::ranges::any_of(kCheckpointEnds, [&](std::string_view end) { return path.ends_with(end); }) ||
         TorchCheckpoint::recognizes(path);
}

}  // namespace

bool Shards::present(const ModelFiles& from) { return weights_in(from) != nullptr; }

Shards::Shards(const std::string& path) : path_(path) { open(path); }

Shards::Shards(const ModelFiles& from) {
  const char* name = weights_in(from);
  if (!name) fail("{}: has neither {} nor {}", from.path(), kWeightFiles[0], kWeightFiles[2]);
  path_ = from.path(name);
  std::string_view(name).ends_with(kIndexEnd) ? open_index(from, name) : open(path_);
}

void Shards::open_index(const ModelFiles& from, const std::string& name) {
  const Settings index(from.open_small(name)->text(), path_);
  const nlohmann::json* map = index.find("weight_map");
  if (!map || !map->is_object()) fail("{}: weight_map must be an object", index.where());
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      fail("{}: {} must be in a file of this directory", index.where(), excerpt(tensor));
    names.insert(file.get<std::string>());
  }
  for (const std::string& file : names) open(from.path(file));
}

void Shards::open(const std::string& path) {
  const auto add = [&](const std::string& name, const TensorView& tensor) {
    if (!views_.emplace(name, tensor).second) fail("{}: is in more than one file", in_file(path, name));
  };
  if (is_checkpoint(path)) {
    const auto file = std::make_shared<const TorchCheckpoint>(TorchCheckpoint::open(path));
    for (const auto& [name, tensor] : file->views()) add(name, tensor);
    files_.push_back(file);
  } else {
    const auto file = std::make_shared<const Safetensors>(Safetensors::open(path));
    for (const std::string& name : file->names()) add(name, *file->find(name));
    files_.push_back(file);
  }
}

}  // namespace qkv
