#include "io/runs/classifier_run.h"

#include <filesystem>

#include "core/fail.h"
#include "io/runs/run_config.h"
#include "io/weights/weights.h"

namespace qkv {
namespace {

std::shared_ptr<const ClassificationHead> load_head(const std::string& path, const ModelConfig& model,
                                                    const ClassificationConfig& config) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) fail("{}: {}", path, error.message());
  const int64_t parameters = count_parameters(model, config);
  if (bytes / sizeof(float) < static_cast<uintmax_t>(parameters))
    fail("{}: has {} bytes, too few for the {} parameters of the head", path, bytes, parameters);
  const auto head = std::make_shared<ClassificationHead>(model, config);
  load_weights(path, head->parameters(), head->parameters().values());
  return head;
}

}  // namespace

ClassifierRun ClassifierRun::read(const RunDirectory& run, const ModelConfig& config) {
  ClassifierRun loaded{EncoderRun::read(run, config), read_fields<ClassificationConfig>(run, run.classification())};
  if (config.has_decoder())
    fail("{}: decoder_layers must be 0 in a classifier (is {})", run.config(), config.decoder_layers);
  if (loaded.dense) fail("{}: dense must be empty in a classifier", run.embedding());
  visit_fields(loaded.classification, RangeChecker(run.classification() + ": "));
  if (loaded.classification.labels.empty()) fail("{}: labels must not be empty", run.classification());
  loaded.head = load_head(run.classifier(), config, loaded.classification);
  return loaded;
}

void ClassifierRun::write(const RunDirectory& run) const {
  EncoderRun::write(run);
  write_fields(run.classification(), classification);
  if (head) save_weights(run.classifier(), head->parameters(), head->parameters().values());
}

}  // namespace qkv
