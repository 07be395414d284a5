#include "recommend/new_items.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "data/log/item_features.h"

namespace qkv {
namespace {

void check_run(const RecommenderRun& run, const RunDirectory& directory) {
  if (run.items.features == 0)
    fail("{}: new items require a run that was trained with features of items", directory.root());
  if (!run.config.tied_output)
    fail("{}: new items require tied_output, because features are learned in the input alone otherwise",
         directory.root());
  for (const Parameter<float>& p : run.model->parameters().all())
    if (p.is_quantized()) fail("{}: has quantized weights; new items require float32", directory.model());
  if (!std::filesystem::exists(directory.feature_columns()))
    fail("{} is missing, because an earlier version trained the run; train again for new items",
         directory.feature_columns());
}

// Returns a model with rows for more items. Those of the new items are zero.
std::unique_ptr<Transformer<float>> with_items(const Transformer<float>& model, int64_t items) {
  ModelConfig config = model.config();
  config.target_vocab = items;
  auto larger = std::make_unique<Transformer<float>>(config, model.item_inputs());
  for (size_t i = 0; i < model.parameters().all().size(); i++) {
    const Parameter<float>&from = model.parameters().all()[i], &to = larger->parameters().all()[i];
    std::copy_n(from.value, from.size(), to.value);
  }
  return larger;
}

}  // namespace

std::string add_new_items(RecommenderRun& run, const RunDirectory& directory, const std::string& path) {
  check_run(run, directory);
  const std::vector<std::string> features = read_names(directory.features(), "feature");
  if (std::ssize(features) != run.items.features)
    fail("{}: must have {} names, item_features in {} (has {})", directory.features(), run.items.features,
         directory.config(), features.size());
  const std::vector<std::string> columns =
      parse_json_strings(read_file(directory.feature_columns(), kMaxConfigBytes), directory.feature_columns());
  const NewItems found = read_new_items(path, columns, run.log.data.items, features);

  const int64_t before = run.config.target_vocab;
  run.config.target_vocab += std::ssize(found.names);
  run.model = with_items(*run.model, run.config.target_vocab);
  run.log.data.items.insert(run.log.data.items.end(), found.names.begin(), found.names.end());
  const Matrix<float> E = run.model->item_table().matrix(), G = run.model->feature_table()->matrix();
  for (int64_t item = 0; item < std::ssize(found.names); item++) {
    const std::span<const int32_t> own = found.features.of(item);
    const float weight = 1 / std::sqrt(static_cast<float>(own.size()));
    for (const int32_t feature : own)
      for (int64_t j = 0; j < E.cols; j++) E(before + item, j) += weight * G(feature, j);
  }
  return fmt::format(
      "{}: {} new items; skipped {} rows of items that the run has, {} items without a known feature and {} "
      "unknown features",
      path, found.names.size(), found.known_rows, found.without_features, found.unknown_features);
}

}  // namespace qkv
