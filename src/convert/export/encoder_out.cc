#include "convert/export/encoder_out.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "convert/export/encoder_tokenizer_out.h"
#include "convert/export/model_class.h"
#include "convert/export/sentence_modules_out.h"
#include "convert/export/weights_out.h"
#include "convert/sentence_transformers.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "io/atomic_file.h"
#include "io/weights/quantized_weights.h"

namespace qkv {
namespace {

using nlohmann::json;

// The ids of the special tokens, as config.json names them.
json ids_of(const EncoderSpecials& specials) {
  json ids = json::object();
  const auto put = [&](const EncoderSpecials::Token& token, std::initializer_list<const char*> names) {
    for (const char* name : names) ids[name] = token.id >= 0 ? json(token.id) : json();
  };
  put(specials.start, {"bos_token_id", "cls_token_id"});
  put(specials.end, {"eos_token_id", "sep_token_id"});
  put(specials.padding, {"pad_token_id"});
  if (specials.mask.id >= 0) put(specials.mask, {"mask_token_id"});
  return ids;
}

// Returns the name of the problem whose scores import reads as these, and that transformers computes.
const char* problem_of(const ClassificationConfig& head, const std::string& where) {
  if (head.scores == ScoreFunction::none) return "regression";
  if (head.scores == ScoreFunction::sigmoid) return "multi_label_classification";
  if (head.labels.size() == 1)
    fail("{}: scores must be sigmoid or none for the nearest class, because there is one label (is softmax)", where);
  return "single_label_classification";
}

// The score function of cross-encoders in sentence-transformers, which do not read the problem.
json cross_encoder_of(const ClassificationConfig& head) {
  const bool is_sigmoid = head.scores == ScoreFunction::sigmoid;
  return {{"activation_fn", torch_activation(is_sigmoid ? DenseActivation::sigmoid : DenseActivation::identity)}};
}

void write_labels(const ClassificationConfig& head, const std::string& where, json& fields) {
  json names = json::object(), ids = json::object();
  for (size_t i = 0; i < head.labels.size(); i++) {
    names[std::to_string(i)] = head.labels[i];
    ids[head.labels[i]] = i;
  }
  fields["id2label"] = std::move(names);
  fields["label2id"] = std::move(ids);
  fields["problem_type"] = problem_of(head, where);
  if (head.scores != ScoreFunction::softmax) fields["sentence_transformers"] = cross_encoder_of(head);
}

}  // namespace

void expect_exportable(const RunDirectory& run, const Transformer<float>& model) {
  if (is_quantized(model.parameters()))
    fail("{}: must be float32 (is quantized): export the run that it was made from", run.model());
}

namespace {

// A classifier of transformers puts nothing before a text.
void check_text(const EncoderRun& loaded, bool is_classifier, const std::string& where) {
  const EmbeddingConfig& text = loaded.embedding;
  if (is_classifier && !text.prefix.empty())
    fail("{}: prefix must be empty to export a classifier (is {})", where, excerpt(text.prefix));
  const int64_t longest = loaded.model->config().max_length;
  if (text.max_length < 0 || text.max_length > longest)
    fail("{}: max_length must be between 0 and {}, the model's (is {})", where, longest, text.max_length);
}

}  // namespace

ExportReport export_encoder(const EncoderRun& loaded, const ClassificationConfig* head, const RunDirectory& run,
                            const RunDirectory& out, ExportType type) {
  const ModelConfig& config = loaded.model->config();
  expect_exportable(run, *loaded.model);
  check_text(loaded, head != nullptr, run.embedding());
  const EncoderSpecials specials = specials_of(loaded, run.embedding());
  ModelClass model_class = choose_class(config, {.where = run.config(),
                                                 .tokens = ids_of(specials),
                                                 .padding = specials.padding.text,
                                                 .head = head,
                                                 .embeds = true,
                                                 .head_where = run.classification()});
  json& fields = model_class.fields;
  fields["architectures"] = {model_class.name};
  fields["torch_dtype"] = name_of(type);
  if (head) write_labels(*head, run.classification(), fields);
  const EmbeddingConfig& text = loaded.embedding;
  const int64_t longest = text.max_length > 0 ? text.max_length : config.max_length;
  const EncoderPairs pairs{head ? head->separators : 1, model_class.config.token_types > 1};
  const std::string tokenizer = encoder_tokenizer_json(loaded, specials, pairs, run);

  std::optional<Safetensors> head_file;
  if (head) head_file = Safetensors::open(run.classifier());
  ExportReport report{model_class.type(), 0};
  write_directory_atomic(out.root(), [&](const std::string& path) {
    const RunDirectory partial(path);
    write_file_atomic(partial.config(), fields.dump(2) + "\n");
    write_file_atomic(partial.tokenizer_json(), tokenizer);
    write_encoder_tokenizer_config(path, specials, pairs, longest);
    report.parameters =
        write_tensors(partial.model(), run, *loaded.model, model_class, type, {}, head_file ? &*head_file : nullptr);
    if (!head) report.parameters += write_sentence_modules(path, loaded, run, longest, type);
  });
  return report;
}

}  // namespace qkv
