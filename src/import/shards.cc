#include "import/shards.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/fail.h"
#include "core/json.h"
#include "import/foreign_tensors.h"
#include "import/settings.h"

namespace qkv {

Shards::Shards(const ModelFiles& from) {
  constexpr const char* kIndex = "model.safetensors.index.json";
  if (!from.has(kIndex)) {
    open(from, "model.safetensors");
    return;
  }
  const Settings index(from.open_small(kIndex)->text(), from.path(kIndex));
  const nlohmann::json* map = index.find("weight_map");
  if (!map || !map->is_object()) fail("{}: weight_map must be an object", index.where());
  std::set<std::string> names;
  for (const auto& [tensor, name] : map->items()) {
    if (!name.is_string() || name.get<std::string>().find('/') != std::string::npos)
      fail("{}: {} must be in a file of this directory", index.where(), excerpt(tensor));
    names.insert(name.get<std::string>());
  }
  for (const std::string& name : names) open(from, name);
}

void Shards::open(const ModelFiles& from, const std::string& name) {
  files_.push_back(Safetensors::open(from.path(name)));
  for (const std::string& tensor : files_.back().names())
    if (!views_.emplace(tensor, *files_.back().find(tensor)).second)
      fail("{}: is in more than one file", in_file(from.path(name), tensor));
}

}  // namespace qkv
