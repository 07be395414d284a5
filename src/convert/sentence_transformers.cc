#include "convert/sentence_transformers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/settings.h"
#include "convert/tensor_map.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr const char* kModuleNames = "Transformer at path \"\", then Pooling, Dense and at last Normalize";

constexpr PoolingName kPoolings[] = {
    {"cls", "pooling_mode_cls_token", Pooling::first},
    {"max", "pooling_mode_max_tokens", Pooling::max},
    {"mean", "pooling_mode_mean_tokens", Pooling::mean},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", Pooling::mean_sqrt_len},
    {"weightedmean", "pooling_mode_weightedmean_tokens", Pooling::weighted_mean},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::last},
};

struct SentenceModule {
  std::string kind;  // the last part of its Python path
  std::string path;  // of its folder
};

Settings settings_of(const ModelFiles& files, const std::string& name) {
  return {files.open_small(name)->text(), files.path(name)};
}

// Returns the settings, or an empty object if the file is missing.
Settings optional_settings(const ModelFiles& files, const std::string& name) {
  return files.has(name) ? settings_of(files, name) : Settings("{}", files.path(name));
}

// Throws Error unless the setting is missing, null or this text.
void expect_text(const Settings& s, const char* name, const char* value) {
  const json* found = s.find(name);
  if (!found || *found == value) return;
  fail("{}: {} must be {} (is {})", s.where(), name, value,
       excerpt(found->is_string() ? found->get<std::string>() : found->dump()));
}

// Returns a text member of a module.
std::string text_of(const json& module, const char* member, const std::string& where) {
  const auto place = module.is_object() ? module.find(member) : module.end();
  if (!module.is_object() || place == module.end() || !place->is_string())
    fail("{}: every module must have the text {}", where, member);
  return place->get<std::string>();
}

std::vector<SentenceModule> read_modules(const ModelFiles& files) {
  const std::string where = files.path(kModulesFile);
  const json list = parse_json(files.open_small(kModulesFile)->text(), where);
  if (!list.is_array()) fail("{}: must be a JSON array", where);
  std::vector<SentenceModule> modules;
  for (const json& module : list) {
    const std::string type = text_of(module, "type", where), path = text_of(module, "path", where);
    const std::string kind = type.substr(type.rfind('.') + 1);
    const bool is_first = modules.empty(), is_transformer = kind == "Transformer" && path.empty();
    const bool is_known = kind == "Pooling" || kind == "Dense" || kind == "Normalize";
    if (is_first ? !is_transformer : !is_known)
      fail("{}: modules must be {} (found {} at path {})", where, kModuleNames, excerpt(type), excerpt(path));
    if (!is_first && (path.find('/') != std::string::npos || path.starts_with('.')))
      fail("{}: path must be a folder of this directory (is {})", where, excerpt(path));
    modules.push_back({kind, path});
  }
  return modules;
}

// Returns the names of the modes that the settings choose.
std::vector<std::string> pooling_modes(const Settings& s) {
  const json* modes = s.find("pooling_mode");
  if (modes && modes->is_string()) return {modes->get<std::string>()};
  if (modes) {
    const auto is_text = [](const json& mode) { return mode.is_string(); };
    if (!modes->is_array() || !std::ranges::all_of(*modes, is_text))
      fail("{}: pooling_mode must be a text or a list of texts", s.where());
    return modes->get<std::vector<std::string>>();
  }
  std::vector<std::string> chosen;
  for (const PoolingName& name : kPoolings)
    if (s.flag(name.flag, false)) chosen.push_back(name.mode);
  return chosen;
}

Pooling read_pooling(const Settings& s) {
  const std::vector<std::string> modes = pooling_modes(s);
  std::vector<std::string_view> known;
  for (const PoolingName& name : kPoolings) {
    if (modes.size() == 1 && modes.front() == name.mode) return name.pooling;
    known.push_back(name.mode);
  }
  fail("{}: pooling_mode must be one of {} (is {})", s.where(), fmt::join(known, ", "),
       modes.empty() ? "none" : excerpt(fmt::format("{}", fmt::join(modes, " and "))));
}

// Returns our name of a class of PyTorch.
std::string read_dense_activation(const Settings& s) {
  const std::string path = s.text("activation_function", "torch.nn.modules.activation.Tanh");
  std::string name = lowercase(path.substr(path.rfind('.') + 1));
  if (!path.starts_with("torch.nn.") ||
      std::ranges::find(kEnumNames<DenseActivation>, name) == kEnumNames<DenseActivation>.end())
    fail("{}: activation_function must be one of torch.nn.Identity, Tanh, ReLU, GELU, Sigmoid and SiLU (is {})",
         s.where(), excerpt(path));
  return name;
}

// Modules after Pooling change the vector of the text.
void check_names(const Settings& s) {
  for (const char* name : {"module_input_name", "module_output_name"}) expect_text(s, name, "sentence_embedding");
}

void check_dense(const Settings& s) {
  check_names(s);
  if (s.flag("use_residual", false)) fail("{}: use_residual must be false (is true)", s.where());
}

void check_feature(const Settings& s, const char* name, int64_t found) {
  if (const int64_t stated = s.integer(name); stated != found)
    fail("{}: {} must be {}, as the weights have it (is {})", s.where(), name, found, stated);
}

// Reads a linear layer of `width` inputs, and sets `width` to the number of its outputs.
DenseModule read_dense(const ModelFiles& files, const std::string& name, int64_t& width, EmbeddingConfig& config) {
  const Settings s = settings_of(files, "config.json");
  check_dense(s);
  config.dense.push_back(read_dense_activation(s));
  if (!Shards::present(files)) fail("{}: expected model.safetensors or pytorch_model.bin", files.path());
  const auto file = std::make_shared<const Shards>(files);
  ForeignTensors tensors(file->path(), file->views());
  TensorMap map;
  map.add_module({.theirs = "linear", .ours = {name}, .bias = s.flag("bias", true)});
  map_tensors(tensors, map);
  const std::vector<int64_t> shape = tensors.shape("linear.weight", 2);
  check_feature(s, "in_features", shape[1]);
  check_feature(s, "out_features", shape[0]);
  if (shape[1] != width) fail("{}: in_features must be {}, the width of its input (is {})", s.where(), width, shape[1]);
  width = shape[0];
  return {file, tensors.take()};
}

// Sets the prompts and the default one, which stands before every text.
void read_prompts(const Settings& s, EmbeddingConfig& config) {
  const json* prompts = s.find("prompts");
  if (prompts && !prompts->is_object()) fail("{}: prompts must be an object", s.where());
  if (prompts)
    for (const auto& [name, prompt] : prompts->items()) {
      if (!prompt.is_string() && !prompt.is_null())
        fail("{}: prompts must hold texts ({} is none)", s.where(), excerpt(name));
      config.prompt_names.push_back(name);
      config.prompts.push_back(prompt.is_null() ? "" : prompt.get<std::string>());
    }
  const std::string name = s.text("default_prompt_name", "");
  if (name.empty()) return;
  const auto place = std::ranges::find(config.prompt_names, name);
  if (place == config.prompt_names.end())
    fail("{}: default_prompt_name must be one of the prompts (is {})", s.where(), excerpt(name));
  config.prefix = config.prompts[to_size(place - config.prompt_names.begin())];
}

// The use of the model in the Transformer module, in the words of sentence-transformers.
struct TransformerTask {
  const char *name, *model_output, *module_output;
};
constexpr TransformerTask kHiddenStates = {"feature-extraction", "last_hidden_state", "token_embeddings"};
constexpr TransformerTask kLogits = {"sequence-classification", "logits", "scores"};

void check_text_modality(const Settings& s, const TransformerTask& task) {
  const json* all = s.find("modality_config");
  if (!all) return;
  if (!all->is_object() || !all->contains("text") || !all->at("text").is_object())
    fail("{}: modality_config must have an object for text", s.where());
  const Settings text(all->at("text").dump(), s.where() + ": modality_config: text");
  expect_text(text, "method", "forward");
  expect_text(text, "method_output_name", task.model_output);
}

// Only options of loading that do not change what is computed are accepted.
void check_load_options(const Settings& s, const char* name) {
  const json* options = s.find(name);
  if (!options) return;
  if (!options->is_object()) fail("{}: {} must be an object", s.where(), name);
  for (const auto& [option, value] : options->items())
    if (option != "trust_remote_code" && option != "torch_dtype" && option != "dtype" &&
        option != "attn_implementation" && option != "use_safetensors")
      fail("{}: {} of {} is not supported (is {})", s.where(), excerpt(option), name, excerpt(value.dump()));
}

// Reads the settings of the Transformer module.
void read_transformer(const ModelFiles& files, const TransformerTask& task, EmbeddingConfig& config) {
  const Settings s = optional_settings(files, kTransformerFile);
  expect_text(s, "transformer_task", task.name);
  expect_text(s, "module_output_name", task.module_output);
  for (const char* name : {"processing_kwargs", "query_expansion", "query_length", "document_length"})
    if (const json* value = s.find(name); value && !value->empty())
      fail("{}: {} is not supported (is {})", s.where(), name, excerpt(value->dump()));
  check_text_modality(s, task);
  for (const char* name : {"model_args", "tokenizer_args", "config_args"}) check_load_options(s, name);
  config.max_length = s.integer("max_seq_length", 0);
  if (config.max_length < 0) fail("{}: max_seq_length must be at least 0 (is {})", s.where(), config.max_length);
  config.lowercase = config.lowercase || s.flag("do_lower_case", false);
}

}  // namespace

std::span<const PoolingName> pooling_names() { return kPoolings; }

std::string torch_activation(DenseActivation activation) {
  switch (activation) {
    case DenseActivation::identity:
      return "torch.nn.modules.linear.Identity";
    case DenseActivation::tanh:
      return "torch.nn.modules.activation.Tanh";
    case DenseActivation::relu:
      return "torch.nn.modules.activation.ReLU";
    case DenseActivation::gelu:
      return "torch.nn.modules.activation.GELU";
    case DenseActivation::sigmoid:
      return "torch.nn.modules.activation.Sigmoid";
    case DenseActivation::silu:
      return "torch.nn.modules.activation.SiLU";
  }
  return "";
}

bool is_embedder(const ModelFiles& files) {
  if (!files.has(kModulesFile)) return false;
  return std::ranges::count(read_modules(files), "Pooling", &SentenceModule::kind) > 0;
}

std::vector<DenseModule> read_sentence_transformers(const ModelFiles& files, int64_t width, EmbeddingConfig& config) {
  std::vector<DenseModule> dense;
  if (!files.has(kModulesFile)) return dense;
  const std::vector<SentenceModule> modules = read_modules(files);
  read_transformer(files, kHiddenStates, config);
  read_prompts(optional_settings(files, kSentenceModelFile), config);
  if (modules.size() < 2 || modules[1].kind != "Pooling")
    fail("{}: the module after Transformer must be Pooling", files.path(kModulesFile));
  for (size_t i = 1; i < modules.size(); i++) {
    const auto& [kind, path] = modules[i];
    const ModelFiles folder = files.inside(path);
    if (config.normalize || (kind == "Pooling" && i > 1))
      fail("{}: modules must be {} (found {} after {})", files.path(kModulesFile), kModuleNames, kind,
           modules[i - 1].kind);
    if (kind == "Dense") dense.push_back(read_dense(folder, fmt::format("dense.{}", dense.size()), width, config));
    if (kind == "Normalize") {
      check_names(optional_settings(folder, "config.json"));
      config.normalize = true;
    }
    if (kind != "Pooling") continue;
    const Settings s = settings_of(folder, "config.json");
    config.pooling = read_pooling(s);
    const auto is_set = [](const std::string& prompt) { return !prompt.empty(); };
    if (!s.flag("include_prompt", true) && std::ranges::any_of(config.prompts, is_set))
      fail("{}: include_prompt must be true in a model with prompts (is false)", s.where());
  }
  return dense;
}

void read_cross_encoder(const ModelFiles& files, EmbeddingConfig& config) {
  if (!files.has(kModulesFile)) return;
  if (const std::vector<SentenceModule> modules = read_modules(files); modules.size() != 1)
    fail("{}: a cross-encoder must be Transformer alone (found {})", files.path(kModulesFile), modules.back().kind);
  read_transformer(files, kLogits, config);
  EmbeddingConfig with_prompt;
  const Settings s = optional_settings(files, kSentenceModelFile);
  read_prompts(s, with_prompt);
  if (!with_prompt.prefix.empty())
    fail("{}: default_prompt_name must be empty in a cross-encoder (is {})", s.where(),
         excerpt(s.text("default_prompt_name")));
}

}  // namespace qkv
