#include "qkv/recommender.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/sorted_unique.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "data/log/item_features.h"
#include "data/log/split.h"
#include "io/runs/run.h"
#include "io/runs/run_kinds.h"
#include "recommend/recommender_state.h"

namespace qkv {
namespace {

// Items that joined the catalogue after training, with vectors from their features.

void check_run(const RecommenderRun& run, const RunDirectory& directory) {
  if (run.items.features == 0)
    fail("{}: new items require a run that was trained with features of items", directory.root());
  if (!run.config.tied_output)
    fail("{}: new items require tied_output, because features are learned in the input alone otherwise",
         directory.root());
  for (const Parameter<float>& p : run.model->parameters().all())
    if (p.is_quantized()) fail("{}: has quantized weights; new items require float32", directory.model());
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

// Adds the items of a table that the run lacks, in the order of the table, with the vectors of their features:
//   E[v] = Σ_f G[f] / √n over the n features f that the model knows (train/optimizer/feature_sums.h)
// The table has the columns of the features that the run was trained with. Items without a known feature are skipped.
// Returns a line that reports the counts. Throws Error, naming the file, if the table is invalid, and if the run has no
// features, 8-bit weights or an output layer of its own.
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

void keep_events_before(RecommenderRun& run, const std::string& part) {
  if (part != "test" && part != "validation") fail("before must be test or validation (is {})", excerpt(part));
  const Split split = split_of(run.recommendation, run.log.data);
  keep_known(run.log.data, split, part == "test" ? HeldOut::test : HeldOut::validation);
}

RecommenderRun load(const std::string& directory, const RecommenderTables& tables, std::vector<std::string>& messages) {
  RecommenderRun run = load_run<RecommenderRun>(directory);
  if (!tables.before.empty()) keep_events_before(run, tables.before);
  if (!tables.new_items.empty()) messages.push_back(add_new_items(run, RunDirectory(directory), tables.new_items));
  return run;
}

History history_of(const Catalogue& catalogue, std::string_view user) {
  const int32_t id = catalogue.users().find(user);
  if (id < 0) fail("unknown user {} (the run has {} users)", excerpt(user), catalogue.users().names().size());
  return catalogue.history_of(id);
}

}  // namespace

struct Recommender::State {
  std::vector<std::string> messages;
  RecommenderState serving;

  State(const std::string& directory, const RecommenderTables& tables, const Placement& placement)
      : serving(load(directory, tables, messages), tables, placement, directory) {}
};

Recommender::Recommender(const std::string& run_directory, const RecommenderTables& tables, const Placement& placement)
    : state_(new State(run_directory, tables, placement)) {}
Recommender::~Recommender() = default;
Recommender::Recommender(Recommender&&) noexcept = default;
Recommender& Recommender::operator=(Recommender&&) noexcept = default;

const std::vector<std::string>& Recommender::messages() const { return state_->messages; }
const std::vector<std::string>& Recommender::items() const { return state_->serving.catalogue().items().names(); }
const std::vector<std::string>& Recommender::users() const { return state_->serving.catalogue().users().names(); }
bool Recommender::has_item(std::string_view item) const { return state_->serving.catalogue().items().find(item) >= 0; }
bool Recommender::has_user(std::string_view user) const { return state_->serving.catalogue().users().find(user) >= 0; }
int64_t Recommender::max_length() const { return state_->serving.max_length(); }

std::vector<std::string> Recommender::history(std::string_view user) const {
  std::vector<std::string> names;
  for (const int32_t item : history_of(state_->serving.catalogue(), user).items)
    names.push_back(items()[to_size(item)]);
  return names;
}

std::vector<int64_t> Recommender::times(std::string_view user) const {
  const auto [items, times] = history_of(state_->serving.catalogue(), user);
  if (times.empty()) return std::vector<int64_t>(items.size(), kNoTime);
  return {times.begin(), times.end()};
}

Recommendations Recommender::recommend(const std::vector<std::string>& history, const RecommendOptions& options,
                                       const std::vector<int64_t>& times) const {
  const HistoryRequest request{&history, times, &options};
  return std::move(state_->serving.recommend({&request, 1}).front());
}

std::vector<Recommendations> Recommender::recommend_all(const std::vector<std::vector<std::string>>& histories,
                                                        const RecommendOptions& options,
                                                        const std::vector<std::vector<int64_t>>& times) const {
  if (!times.empty() && times.size() != histories.size())
    fail("times must be given for each of {} histories (are given for {})", histories.size(), times.size());
  check(options);
  std::vector<HistoryRequest> requests;
  for (size_t i = 0; i < histories.size(); i++)
    requests.push_back({&histories[i], times.empty() ? std::span<const int64_t>() : times[i], &options});
  return state_->serving.recommend(requests);
}

std::vector<Recommendations> Recommender::recommend_all(const std::vector<RecommendRequest>& requests) const {
  const RecommendOptions defaults;
  std::vector<HistoryRequest> all;
  for (const RecommendRequest& request : requests)
    all.push_back({&request.history, request.times, request.options ? request.options.get() : &defaults});
  return state_->serving.recommend(all);
}

std::vector<std::string> Recommender::basket(const std::vector<std::string>& items) const {
  std::vector<std::pair<uint32_t, std::string>> by_id;  // the id of an unknown item, −1, becomes the largest
  for (const std::string& item : items)
    by_id.emplace_back(static_cast<uint32_t>(state_->serving.catalogue().items().find(item)), item);
  std::vector<std::string> ordered;
  for (auto& [id, item] : sorted_unique(std::move(by_id))) ordered.push_back(std::move(item));
  return ordered;
}

Recommendations Recommender::similar(std::string_view item, const RecommendOptions& options) const {
  return state_->serving.similar(item, options);
}

HiddenStates Recommender::hidden(const std::vector<std::string>& history, const std::vector<int64_t>& times) const {
  return state_->serving.hidden(history, times);
}

void Recommender::check(const RecommendOptions& options) const { state_->serving.check(options); }

void check_times(std::span<const int64_t> times, size_t events) {
  if (!times.empty() && times.size() != events)
    fail("times must be one for each of {} events (are {})", events, times.size());
  int64_t last = kNoTime;
  for (size_t i = 0; i < times.size(); i++) {
    if (times[i] == kNoTime) continue;
    if (times[i] < last) fail("times must be ascending (event {} has {} after {})", i + 1, times[i], last);
    last = times[i];
  }
}

}  // namespace qkv
