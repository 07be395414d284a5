#include "import/sentence_transformers.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/fail.h"
#include "core/json.h"
#include "import/settings.h"

namespace qkv {
namespace {

using nlohmann::json;

Settings settings_of(const ModelFiles& files, const std::string& name) {
  return {files.open_small(name)->text(), files.path(name)};
}

constexpr std::pair<const char*, Pooling> kPoolings[] = {
    {"pooling_mode_mean_tokens", Pooling::mean},
    {"pooling_mode_cls_token", Pooling::first},
    {"pooling_mode_lasttoken", Pooling::last},
};

void read_pooling(const Settings& s, EmbeddingConfig& config) {
  std::optional<Pooling> found;
  for (const auto& [name, pooling] : kPoolings) {
    if (!s.flag(name, false)) continue;
    if (found) fail("{}: must have one pooling (has {} and another one)", s.where(), name);
    found = pooling;
  }
  for (const char* name :
       {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens"})
    if (s.flag(name, false))
      fail("{}: {} must be false (is true): poolings are the mean, the first or the last token", s.where(), name);
  if (!found) fail("{}: must have a pooling: the mean, the first or the last token", s.where());
  config.pooling = *found;
  if (!config.prefix.empty() && !s.flag("include_prompt", true))
    fail("{}: include_prompt must be true with a default prompt (is false)", s.where());
}

// Returns a text member of a module.
std::string text_of(const json& module, const char* member, const std::string& where) {
  const auto place = module.is_object() ? module.find(member) : module.end();
  if (!module.is_object() || place == module.end() || !place->is_string())
    fail("{}: every module must have the text {}", where, member);
  return place->get<std::string>();
}

void read_module(const ModelFiles& files, const json& module, EmbeddingConfig& config, const std::string& where) {
  const std::string type = text_of(module, "type", where), path = text_of(module, "path", where);
  const std::string kind = type.substr(type.rfind('.') + 1);  // the last part of its Python path
  if (kind == "Pooling") {
    if (path.find('/') != std::string::npos || path.starts_with('.'))
      fail("{}: path must be a folder of this directory (is {})", where, excerpt(path));
    read_pooling(settings_of(files.inside(path), "config.json"), config);
  } else if (kind == "Normalize") {
    config.normalize = true;
  } else if (kind != "Transformer" || !path.empty()) {
    fail("{}: modules must be Transformer at path \"\", Pooling or Normalize (found {} at path {})", where,
         excerpt(type), excerpt(path));
  }
}

// Returns the default prompt, which stands before every text, or "".
std::string default_prompt(const Settings& s) {
  const std::string name = s.text("default_prompt_name", "");
  if (name.empty()) return "";
  const json* prompts = s.find("prompts");
  if (!prompts || !prompts->is_object()) fail("{}: prompts must be an object", s.where());
  return Settings(prompts->dump(), s.where()).text(name);
}

}  // namespace

void read_sentence_transformers(const ModelFiles& files, EmbeddingConfig& config) {
  if (!files.has("modules.json")) return;
  if (files.has("config_sentence_transformers.json"))
    config.prefix = default_prompt(settings_of(files, "config_sentence_transformers.json"));
  if (files.has("sentence_bert_config.json")) {
    const Settings s = settings_of(files, "sentence_bert_config.json");
    config.max_length = s.integer("max_seq_length", 0);
    if (config.max_length < 0) fail("{}: max_seq_length must be at least 0 (is {})", s.where(), config.max_length);
    config.lowercase = config.lowercase || s.flag("do_lower_case", false);
  }
  const std::string where = files.path("modules.json");
  const json modules = parse_json(files.open_small("modules.json")->text(), where);
  if (!modules.is_array()) fail("{}: must be a JSON array", where);
  for (const json& module : modules) read_module(files, module, config, where);
}

}  // namespace qkv
