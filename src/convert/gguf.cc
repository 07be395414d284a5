// GGUF files of llama.cpp: the metadata becomes a config.json of transformers, and the tensors get the names that the
// model class has there, so that src/convert/architectures describes both.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "convert/architecture.h"
#include "convert/gguf_architectures.h"
#include "convert/imported_model.h"
#include "convert/text/gguf_text.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr const char* kRotaryFactors = "rope_freqs.weight";

const GgufArchitecture& gguf_architecture(const GgufMetadata& metadata) {
  const std::string name = metadata.text("general.architecture");
  std::vector<const char*> names;
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    if (architecture.name == name) return architecture;
    names.push_back(architecture.name);
  }
  fail("{}: general.architecture must be one of {} (is {})", metadata.where(), fmt::join(names, ", "), excerpt(name));
}

class GgufConfig {
 public:
  GgufConfig(const GgufArchitecture& architecture, const GgufMetadata& metadata, ForeignTensors& tensors)
      : architecture_(architecture), metadata_(metadata), tensors_(tensors) {}

  // The config.json of transformers. Throws Error for a key of the architecture that is not known.
  json object() {
    json config = {{"model_type", architecture_.model_type}};
    for (const GgufField& field : architecture_.fields)
      if (const json value = scalar(own(field.key), field.required); !value.is_null()) config[field.field] = value;
    config["vocab_size"] = tensors_.shape("token_embd.weight", 2)[0];
    const bool tied = !tensors_.has("output.weight") || tensors_.same("output.weight", "token_embd.weight");
    config["tie_word_embeddings"] = tied;
    set_head_width(config);
    if (architecture_.rotary_share) config[architecture_.rotary_share] = rotary_share(config);
    if (const json rotary = rotary_scaling(config); !rotary.is_null()) config["rope_scaling"] = rotary;
    if (architecture_.finish) architecture_.finish(config, metadata_, tensors_);
    require_known_keys();
    return config;
  }

  // Checks what the metadata says of a model that the config.json says in another way.
  void check_widths(const ModelConfig& m) {
    for (const auto& [key, width] : {std::pair{"attention.key_length", m.attention.key_width},
                                     {"attention.value_length", m.attention.value_width},
                                     {"rope.dimension_count", m.rotated_width()}})
      if (m.uses_rotary() && metadata_.integer(own(key), width) != width)
        fail("{}: {} must be {} (is {})", metadata_.where(), own(key), width, metadata_.integer(own(key)));
  }

 private:
  std::string own(const std::string& key) {
    known_.insert(std::string(architecture_.name) + "." + key);
    return std::string(architecture_.name) + "." + key;
  }

  // A value, or the one that all layers have.
  json scalar(const std::string& key, bool required) const {
    if (!metadata_.has(key)) {
      if (required) fail("{}: {} is missing", metadata_.where(), key);
      return {};
    }
    const GgufValue& value = metadata_.all().at(key);
    if (value.is_array) {
      const std::vector<int64_t> layers = metadata_.integers(key, 1000);
      if (layers.empty() || std::ranges::any_of(layers, [&](int64_t n) { return n != layers[0]; }))
        fail("{}: {} must be the same in all layers", metadata_.where(), key);
      return layers[0];
    }
    if (value.type == GgufType::boolean) return metadata_.flag(key);
    if (value.type == GgufType::f32 || value.type == GgufType::f64) return metadata_.number(key);
    return metadata_.integer(key);
  }

  static int64_t width_of_heads(const json& config) {
    const auto number = [&](const char* name) {
      const auto place = config.find(name);
      return place != config.end() && place->is_number_integer() ? place->get<int64_t>() : 0;
    };
    return number("num_attention_heads") > 0 ? number("hidden_size") / number("num_attention_heads") : 0;
  }

  // llama.cpp's default of the width of heads is that of the model over their number.
  void set_head_width(json& config) const {
    for (const GgufField& field : architecture_.fields)
      if (std::string_view(field.field) == "head_dim" && !config.contains("head_dim"))
        config["head_dim"] = width_of_heads(config);
  }

  // The share of the components of a head that turn, from which transformers computes their number again.
  double rotary_share(const json& config) {
    const std::string key = own("rope.dimension_count");
    const int64_t turned = metadata_.integer(key), width = width_of_heads(config);
    if (turned < 1 || turned > width)
      fail("{}: {} must be between 1 and {}, the width of a head (is {})", metadata_.where(), key, width, turned);
    const double share = static_cast<double>(turned) / static_cast<double>(width);
    const bool too_small = static_cast<int64_t>(static_cast<double>(width) * share) < turned;
    return too_small ? std::nextafter(share, 2.0) : share;
  }

  json rotary_scaling(const json& config) {
    if (tensors_.has(kRotaryFactors)) return llama3_scaling(config);
    const std::string type = metadata_.text(own("rope.scaling.type"), "none");
    own("rope.scaling.finetuned");
    const std::string context = own("rope.scaling.original_context_length");
    if (type == "none") return {};
    if (type != "linear" && type != "yarn")
      fail("{}: {} must be none, linear or yarn (is {})", metadata_.where(), own("rope.scaling.type"), excerpt(type));
    json scaling = {{"rope_type", type}, {"factor", metadata_.number(own("rope.scaling.factor"))}};
    if (type == "linear") return scaling;
    scaling["original_max_position_embeddings"] = metadata_.integer(context);
    scaling["beta_fast"] = metadata_.number(own("rope.scaling.yarn_beta_fast"), 32);
    scaling["beta_slow"] = metadata_.number(own("rope.scaling.yarn_beta_slow"), 1);
    return scaling;
  }

  // Finds the scaling of Llama 3 whose divisors of the rates the file holds. The low and the high number of turns are 1
  // and 4 in all models; the context follows from a divisor between 1 and the largest.
  json llama3_scaling(const json& config) {
    const double base = config.value("rope_theta", 10000.0);
    const std::vector<float> divisors = rotary_divisors();
    const double scale = *std::ranges::max_element(divisors);
    const auto rate = [&](size_t j) {  // in turns
      return std::pow(base, -static_cast<double>(j) / static_cast<double>(divisors.size())) / 2 / std::numbers::pi;
    };
    const auto divisor = [&](size_t j, double context) {
      const double smooth = std::clamp((context * rate(j) - 1) / 3, 0.0, 1.0);
      return 1 / ((1 - smooth) / scale + smooth);
    };
    double context = 8192;
    for (size_t j = 0; j < divisors.size(); j++) {
      if (divisors[j] <= 1.001 || divisors[j] >= scale * 0.999) continue;
      const double smooth = (1 / static_cast<double>(divisors[j]) - 1 / scale) / (1 - 1 / scale);
      context = std::round((smooth * 3 + 1) / rate(j));
      break;
    }
    for (size_t j = 0; j < divisors.size(); j++)
      if (!(std::abs(divisors[j] - divisor(j, context)) <= 1e-4 * divisors[j]) || !(context < 1e9))
        fail("{}: must be the divisors of Llama 3 for low_freq_factor 1 and high_freq_factor 4",
             in_file(metadata_.where(), kRotaryFactors));
    return {{"rope_type", "llama3"},
            {"factor", scale},
            {"low_freq_factor", 1},
            {"high_freq_factor", 4},
            {"original_max_position_embeddings", static_cast<int64_t>(context)}};
  }

  std::vector<float> rotary_divisors() {
    const TensorView& tensor = tensors_.at(kRotaryFactors);
    constexpr int64_t kMostPairs = 4096;
    if (tensor.dtype != DType::f32 || tensor.shape.size() != 1 || tensor.shape[0] > kMostPairs)
      fail("{}: must be F32 [{}] at most (is {})", in_file(metadata_.where(), kRotaryFactors), kMostPairs,
           describe(tensor.dtype, tensor.shape));
    std::vector<float> divisors(to_size(tensor.shape[0]));
    std::memcpy(divisors.data(), tensor.data.data(), tensor.data.size());
    tensors_.ignore(kRotaryFactors);
    return divisors;
  }

  void require_known_keys() {
    for (const char* ignored :
         {"vocab_size", "attention.key_length", "attention.value_length", "rope.dimension_count", "tensor_data_layout"})
      own(ignored);
    for (const char* zero : {"expert_count", "expert_used_count"})
      if (metadata_.integer(own(zero), 0) != 0)
        fail("{}: {} must be 0 (is {})", metadata_.where(), own(zero), metadata_.integer(own(zero)));
    if (!metadata_.flag(own("attention.causal"), true))
      fail("{}: {} must be true", metadata_.where(), own("attention.causal"));
    for (const auto& [key, value] : metadata_.all())
      if (key.starts_with(std::string(architecture_.name) + ".") && !known_.contains(key))
        fail("{}: not supported: {}", metadata_.where(), excerpt(key));
  }

  const GgufArchitecture& architecture_;
  const GgufMetadata& metadata_;
  ForeignTensors& tensors_;
  std::set<std::string> known_;
};

// The name in GGUF of a tensor of transformers.
std::string gguf_name(const GgufArchitecture& architecture, const std::string& theirs) {
  const size_t dot = theirs.rfind('.');
  std::string module = theirs.substr(0, dot);
  const size_t begin = module.find_first_of("0123456789"), end = module.find('.', begin);
  const bool in_layer = begin != module.npos && begin > 0 && module[begin - 1] == '.' && end != module.npos;
  const std::string layer = in_layer ? module.substr(begin, end - begin) : "";
  if (in_layer) module.replace(begin, layer.size(), "#");
  for (const GgufModule& known : architecture.modules) {
    if (known.theirs != module) continue;
    std::string name = known.gguf;
    if (in_layer) name.replace(name.find('#'), 1, layer);
    return name + theirs.substr(dot);
  }
  fail("{}: has no name in GGUF", theirs);
}

// Old files of Phi have the queries, keys and values of a layer in one tensor.
void join_fused(TensorMap& map, const ForeignTensors& tensors, const ModelConfig& m) {
  constexpr std::string_view kQueries = ".attn_q.";
  for (size_t i = 0; i < map.rules.size(); i++) {
    const size_t place = map.rules[i].theirs.find(kQueries);
    if (place == std::string::npos) continue;
    const auto with = [&](const char* name) {
      return std::string(map.rules[i].theirs).replace(place, kQueries.size(), name);
    };
    if (!tensors.has(with(".attn_qkv."))) continue;
    for (const std::string& name : {with(".attn_k."), with(".attn_v.")}) {
      const auto part = std::ranges::find(map.rules, name, &TensorRule::theirs);
      map.rules[i].ours.push_back(part->ours.front());
      part->ours.clear();
    }
    const int64_t keys = m.key_value_heads() * m.attention.key_width;
    map.rules[i].rows = {m.attention.heads * m.attention.key_width, keys, keys};
    map.rules[i].theirs = with(".attn_qkv.");
  }
  std::erase_if(map.rules, [](const TensorRule& rule) { return rule.ours.empty(); });
}

// The tensors of a model class under their names in GGUF. Its converter has made all weights [out, in], and put
// queries, keys and values one below the other.
TensorMap gguf_tensors(const GgufArchitecture& architecture, const TensorMap& theirs, const ForeignTensors& tensors,
                       const ModelConfig& m) {
  TensorMap map;
  for (TensorRule rule : theirs.rules) {
    const bool turns =
        rule.theirs.find("q_proj") != std::string::npos || rule.theirs.find("k_proj") != std::string::npos;
    rule.theirs = gguf_name(architecture, rule.theirs);
    for (std::string& alias : rule.aliases) alias = gguf_name(architecture, alias);
    rule.old_names.clear();
    rule.layout = Layout::rows;
    rule.groups = 1;
    if (architecture.whole_norms) rule.offset = 0;
    if (architecture.interleaved && turns) rule.interleaved = m.attention.key_width;
    map.add_tensor(std::move(rule));
  }
  if (!architecture.interleaved) join_fused(map, tensors, m);
  return map;
}

}  // namespace

ImportedModel read_gguf(const std::string& path) {
  const auto mapped = std::make_shared<const MappedFile>(path);
  GgufFile file = parse_gguf(mapped->bytes(), path);
  const GgufMetadata& metadata = file.metadata;
  const GgufArchitecture& own = gguf_architecture(metadata);
  if (metadata.integer("split.count", 0) > 1)
    fail("{}: must be a whole model (is one of {} parts)", path, metadata.integer("split.count"));
  ForeignTensors tensors(path, std::move(file.tensors));
  GgufConfig parts(own, metadata, tensors);
  const Settings settings(parts.object().dump(), path);
  const Architecture& architecture = architecture_of(settings);
  const ModelConfig config = read_config(architecture, settings);
  parts.check_widths(config);
  map_tensors(tensors, gguf_tensors(own, architecture.tensors(config, settings), tensors, config));
  return {architecture.name, path, config, gguf_text(metadata), tensors.take(), mapped};
}

}  // namespace qkv
