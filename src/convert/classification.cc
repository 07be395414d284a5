#include "convert/classification.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/text/vocabulary_files.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

using nlohmann::json;

std::vector<std::string> read_labels(const Settings& config) {
  std::vector<std::string> labels;
  const json* names = config.find("id2label");
  if (!names) {
    const int64_t count = config.integer("num_labels", 2);
    if (count < 1 || count > 100'000)
      fail("{}: num_labels must be between 1 and 100000 (is {})", config.where(), count);
    for (int64_t i = 0; i < count; i++) labels.push_back(fmt::format("LABEL_{}", i));
    return labels;
  }
  if (!names->is_object() || names->empty())
    fail("{}: id2label must be an object with at least one label", config.where());
  for (size_t i = 0; i < names->size(); i++) {
    const auto name = names->find(std::to_string(i));
    if (name == names->end() || !name->is_string()) fail("{}: id2label must name a label for {}", config.where(), i);
    labels.push_back(name->get<std::string>());
  }
  return labels;
}

// The score function that a cross-encoder of sentence-transformers names, by the path of a class of PyTorch.
struct CrossEncoderActivation {
  std::string path, where;
};

// Returns the one of config_sentence_transformers.json (from version 5.4 on), or else of config.json, or "".
CrossEncoderActivation activation_of_cross_encoder(const ModelFiles& files, const Settings& config) {
  constexpr const char *kFile = "config_sentence_transformers.json", *kField = "activation_fn";
  if (files.has(kFile)) {
    const Settings own(files.open_small(kFile)->text(), files.path(kFile));
    if (const std::string path = own.text(kField, ""); !path.empty()) return {path, own.where()};
  }
  const json* own = config.find("sentence_transformers");
  const std::string where = config.where() + ": sentence_transformers";
  if (own && !own->is_object()) fail("{} must be an object", where);
  if (own)
    if (const std::string path = Settings(own->dump(), where).text(kField, ""); !path.empty()) return {path, where};
  return {config.text("sbert_ce_default_activation_function", ""), config.where()};
}

ScoreFunction read_score_function(const ModelFiles& files, const Settings& config, size_t labels) {
  const auto [path, where] = activation_of_cross_encoder(files, config);
  const std::string name = path.starts_with("torch.nn.") ? path.substr(path.rfind('.') + 1) : path;
  if (name == "Sigmoid") return ScoreFunction::sigmoid;
  if (name == "Softmax") return ScoreFunction::softmax;
  if (name == "Identity") return ScoreFunction::none;
  if (!path.empty())
    fail(
        "{}: the activation function of sentence-transformers must be Sigmoid, Softmax or Identity of torch.nn (is {})",
        where, excerpt(path));
  const std::string problem = config.text("problem_type", "");
  if (problem == "regression") return ScoreFunction::none;
  if (problem == "multi_label_classification" || (problem.empty() && labels == 1)) return ScoreFunction::sigmoid;
  if (problem == "single_label_classification" && labels == 1) return ScoreFunction::sigmoid;
  if (problem == "single_label_classification" || problem.empty()) return ScoreFunction::softmax;
  fail("{}: problem_type must be single_label_classification, multi_label_classification or regression (is {})",
       config.where(), excerpt(problem));
}

}  // namespace

HeadRule bert_head(const std::string& pooler) { return {.dense = pooler, .token_types = true}; }

HeadRule roberta_head() { return {.dense = "classifier.dense", .output = "classifier.out_proj", .separators = 2}; }

bool is_classifier(const Settings& config) {
  const json* classes = config.find("architectures");
  if (!classes || !classes->is_array()) return false;
  return std::ranges::any_of(*classes, [](const json& name) {
    return name.is_string() && name.get_ref<const std::string&>().ends_with("ForSequenceClassification");
  });
}

ClassificationConfig read_classification(const ModelFiles& files, const Settings& config, const HeadRule& rule) {
  ClassificationConfig c;
  c.labels = read_labels(config);
  c.scores = read_score_function(files, config, c.labels.size());
  c.pooling = rule.pooling;
  c.activation = rule.activation;
  c.dense_bias = rule.dense_bias;
  c.norm = !rule.norm.empty();
  c.separators = rule.separators;
  return c;
}

int64_t read_text_limit(const ModelFiles& files, int64_t most) {
  const Settings settings = read_tokenizer_config(files);
  const double limit = settings.number("model_max_length", static_cast<double>(most));
  if (!(limit >= 1)) fail("{}: model_max_length must be at least 1 (is {})", settings.where(), limit);
  return limit < static_cast<double>(most) ? static_cast<int64_t>(limit) : most;
}

void add_head(TensorMap& map, const HeadRule& rule, const ModelConfig& model) {
  map.add_module({.theirs = rule.dense, .ours = {"head.dense"}, .bias = rule.dense_bias});
  if (!rule.norm.empty()) map.add_module({.theirs = rule.norm, .ours = {"head.norm"}, .bias = norm_has_bias(model)});
  map.add_module({.theirs = rule.output, .ours = {"head.output"}});
}

}  // namespace qkv
