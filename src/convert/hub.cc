#include "convert/hub.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "convert/architecture.h"
#include "convert/hub/snapshot.h"
#include "convert/model_files.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

using nlohmann::json;

// The table of all files that import reads: the next three lists. A `*` stands for any text without /.

struct Weights {
  const char* file;
  HubLayout layout;
};

// The first that the repository has is downloaded. Safetensors files come first: they are checked without a pickle.
constexpr Weights kWeights[] = {
    {"model.safetensors", HubLayout::transformers},
    {"model.safetensors.index.json", HubLayout::transformers},  // with the files that it names
    {"pytorch_model.bin", HubLayout::transformers},
    {"pytorch_model.bin.index.json", HubLayout::transformers},  // with the files that it names
    {"model.bin", HubLayout::directory},                        // CTranslate2
    {"*.npz", HubLayout::marian},
    {"*.gguf", HubLayout::file},
    {"*.argosmodel", HubLayout::file},
};

// Each that the repository has is downloaded with the weights of a directory.
constexpr const char* kSettings[] = {
    "config.json",
    "generation_config.json",
    // chat templates
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates/*.jinja",
    // sentence-transformers; modules.json names folders whose config.json and weights are read
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    // tokenizers
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokenizer.json",
    "vocab.json",
    "target_vocab.json",
    "merges.txt",
    "vocab.txt",
    "*.model",
    "*.spm",
    // CTranslate2
    "shared_vocabulary.json",
    "shared_vocabulary.txt",
    "source_vocabulary.json",
    "source_vocabulary.txt",
    "target_vocabulary.json",
    "target_vocabulary.txt",
};

// Each that the repository has is downloaded with the weights of Marian.
constexpr const char* kMarianSettings[] = {"*.yml", "*.spm", "vocab.model"};

constexpr size_t kListed = 12;  // files that an error lists

bool matches(std::string_view file, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return file == pattern;
  const std::string_view prefix = pattern.substr(0, star), suffix = pattern.substr(star + 1);
  if (file.size() < prefix.size() + suffix.size() || !file.starts_with(prefix) || !file.ends_with(suffix)) return false;
  return file.substr(prefix.size()).find('/') == std::string_view::npos;
}

std::vector<std::string> matching(const std::vector<std::string>& files, std::string_view pattern) {
  std::vector<std::string> found;
  for (const std::string& file : files)
    if (matches(file, pattern)) found.push_back(file);
  return found;
}

std::string listing(const std::vector<std::string>& files) {
  if (files.empty()) return "no files";
  const auto end = files.begin() + static_cast<std::ptrdiff_t>(std::min(files.size(), kListed));
  const std::string first = fmt::format("{}", fmt::join(files.begin(), end, ", "));
  return files.size() <= kListed ? first : fmt::format("{} and {} more", first, files.size() - kListed);
}

void add_shards(const json& index, const std::vector<std::string>& files, const std::string& where,
                std::set<std::string>& names) {
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object()) fail("{}: weight_map must be an object", where);
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (!std::ranges::binary_search(files, name))
      fail("{}: {} must be in a file of the repository (is in {})", where, excerpt(tensor), excerpt(name));
    names.insert(name);
  }
}

// Adds the settings of each module and its weights, the first of these that it has.
void add_modules(const json& modules, const std::vector<std::string>& files, std::set<std::string>& names) {
  for (const json& module : modules) {
    const auto path = module.is_object() ? module.find("path") : module.end();
    if (!module.is_object() || path == module.end() || !path->is_string()) continue;  // import refuses it
    const std::string folder = path->get<std::string>() + "/";
    const auto has = [&](const char* name) { return std::ranges::binary_search(files, folder + name); };
    if (folder == "/") continue;
    if (has("config.json")) names.insert(folder + "config.json");
    for (const char* weights : {"model.safetensors", "pytorch_model.bin"})
      if (has(weights)) {
        names.insert(folder + weights);
        break;
      }
  }
}

void add_settings(std::span<const char* const> patterns, const std::vector<std::string>& files, HubFiles& chosen) {
  for (const char* pattern : patterns)
    for (std::string& name : matching(files, pattern)) chosen.names.push_back(std::move(name));
}

// Throws the Error that import would throw for config.json after the download.
void check_config(const ModelFiles& files) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  read_config(architecture_of(settings), settings);
}

}  // namespace

HubFiles files_with(const std::string& file, const std::vector<std::string>& files) {
  HubFiles chosen{matches(file, "*.npz") ? HubLayout::marian : HubLayout::file};
  if (chosen.layout == HubLayout::marian) add_settings(kMarianSettings, files, chosen);
  chosen.names.push_back(file);
  return chosen;
}

HubFiles choose_files(const std::vector<std::string>& files, const std::string& source) {
  for (const Weights& weights : kWeights) {
    const std::vector<std::string> found = matching(files, weights.file);
    if (found.empty()) continue;
    if ((weights.layout == HubLayout::file || weights.layout == HubLayout::marian) && found.size() > 1)
      fail("{}: has {} models: add the name of one, as in {}/{} (has {})", source, found.size(), source, found.front(),
           listing(found));
    if (weights.layout == HubLayout::transformers && matching(files, "config.json").empty()) continue;
    if (weights.layout == HubLayout::file || weights.layout == HubLayout::marian)
      return files_with(found.front(), files);
    HubFiles chosen{weights.layout};
    add_settings(kSettings, files, chosen);
    chosen.names.push_back(found.front());
    return chosen;
  }
  std::vector<std::string_view> accepted;
  for (const Weights& weights : kWeights) accepted.push_back(weights.file);
  fail("{}: has no weights that can be read: expected config.json with {} (has {})", source, fmt::join(accepted, ", "),
       listing(files));
}

std::vector<std::string> hub_patterns() {
  std::vector<std::string> patterns(std::begin(kSettings), std::end(kSettings));
  patterns.insert(patterns.end(), std::begin(kMarianSettings), std::end(kMarianSettings));
  for (const Weights& weights : kWeights) patterns.push_back(weights.file);
  return patterns;
}

bool names_files(std::string_view file) { return file == "modules.json" || file.ends_with(".index.json"); }

std::vector<std::string> files_named_in(std::string_view file, std::string_view text,
                                        const std::vector<std::string>& files, const std::string& where) {
  const json content = parse_json(text, where);
  std::set<std::string> names;
  if (file == "modules.json")
    add_modules(content, files, names);
  else
    add_shards(content, files, where, names);
  return {names.begin(), names.end()};
}

HubModel fetch_from_hub(const std::string& source, const OnDownload& on_download) {
  const HubName name = parse_hub_name(source);
  HubSnapshot snapshot(name, read_hub_settings(), on_download);
  HubModel model{snapshot.folder(), snapshot.commit()};
  const ModelFiles files = ModelFiles::of_directory(model.path);
  HubFiles chosen =
      name.file.empty() ? choose_files(snapshot.files(), snapshot.source()) : files_with(name.file, snapshot.files());
  for (size_t i = 0; i < chosen.names.size(); i++) {
    const std::string file = chosen.names[i];
    const std::string path = snapshot.fetch(file);
    if (file == "config.json" && chosen.layout == HubLayout::transformers) check_config(files);
    if (chosen.layout == HubLayout::file || chosen.layout == HubLayout::marian) model.path = path;
    if (!names_files(file)) continue;
    for (std::string& other : files_named_in(file, files.open_small(file)->text(), snapshot.files(), path))
      if (std::ranges::find(chosen.names, other) == chosen.names.end()) chosen.names.push_back(std::move(other));
  }
  snapshot.finish();
  return model;
}

}  // namespace qkv
