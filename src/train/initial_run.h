// Training from the weights of another run, whose shape, vocabulary and special tokens are kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "data/log/interactions.h"
#include "data/log/split.h"
#include "io/runs/run.h"
#include "model/layers/parameter.h"
#include "model/transformer.h"
#include "train/optimizer/trained_parts.h"

namespace qkv {

// The names and values of the options of a struct.
struct OptionValues {
  std::vector<std::pair<std::string, std::string>> list;

  template <class Value>
  void operator()(std::string_view name, const Value& value, const Field& field) {
    if (field.visibility == Visibility::internal) return;
    if constexpr (std::is_enum_v<Value>)
      list.emplace_back(name, name_of(value));
    else
      list.emplace_back(name, fmt::format("{}", value));
  }
  void operator()(std::string_view, const std::vector<std::string>&, const Field&) {}  // compared elsewhere
};

// Throws Error, naming the run and the first option that differs, unless all options but those of `free` are equal.
template <class Options>
void expect_same_options(const std::string& run, Options before, Options now,
                         const std::vector<std::string_view>& free = {}) {
  OptionValues kept, given;
  visit_fields(before, kept);
  visit_fields(now, given);
  for (size_t i = 0; i < given.list.size(); i++)
    if (kept.list[i] != given.list[i] && std::ranges::find(free, given.list[i].first) == free.end())
      fail("{}: {} is {}, here {}; training from a run keeps it", run, kept.list[i].first, kept.list[i].second,
           given.list[i].second);
}

// The same for the shapes of models: all options but dropout.
void expect_same_shape(const std::string& run, ModelConfig before, ModelConfig now);

// Sets training values that suit fine-tuning.
void set_fine_tuning(TrainingConfig& training);
// The same for models of plain text.
void set_text_fine_tuning(TrainingConfig& training);
// Describes the start from a run in one line, with the values that set_fine_tuning decides on.
std::string starting_report(const std::string& run, const TrainingConfig& training);

// Throws Error, naming the file, if a model of this run is quantized.
void expect_float32(const RunDirectory& run, const Transformer<float>& model);

// Throws Error if the run that is resumed was not started from another run, although `init` names one.
void expect_started_from(const RunDirectory& resumed, const std::string& init);

// Writes what a new run takes from the run `init`: its weights, from which training starts, or a reference to them if
// an adapter is trained. Does nothing if init is "".
template <class Run>
void write_initial(const std::string& init, const Recipe& recipe, const RunDirectory& to) {
  if (init.empty()) return;
  const Run run = load_run<Run>(init);
  expect_float32(RunDirectory(init), *run.model);
  if (recipe.training.lora_rank > 0) return write_adapter(to, make_adapter(recipe, init));
  save_weights(to.start(), run.model->parameters(), run.model->parameters().values());
}

// Returns the log with these items as ids 0, 1, …, even those that it does not contain, followed by its other items in
// their order.
Interactions with_first_items(Interactions log, const std::vector<std::string>& first);

// Events that the split of a log holds out for validation and test, and those of them that another run was trained on.
struct HeldOutEvents {
  int64_t all = 0, trained = 0;
};

// Counts the events that `split` holds out of `log`, and those that the training part of the log `before` has more of,
// by user and item, than the training part of `log`. Items have the same ids in both logs, and users the same names.
HeldOutEvents count_held_out(const Interactions& before, const Split& split_before, const Interactions& log,
                             const Split& split);

// Describes the events that a recommender is not trained on if it starts from `run`, which may have been trained on
// some of them. Returns a line if these are few, as when users joined the log since, "" if there are none. Otherwise
// throws Error, naming the run's directory and the splits: scores on such events mean nothing.
std::string check_held_out(const std::string& directory, const RecommenderRun& run, const RecommendationConfig& config,
                           const Interactions& log);

// Returns the fingerprint of the text that a run was trained on, as its state has it; "" without a state.
std::string trained_text(const std::string& directory);

// Plain text of which a part is set aside for evaluation.
struct DevText {
  const std::vector<std::string>& files;           // with the text for evaluation; empty: the end of `documents`
  const std::vector<std::string_view>& documents;  // all of the text
  double share = 0, share_before = 0;              // set aside here, and by the initial run
  std::function<std::string(const std::vector<std::string_view>&)> fingerprint;  // of documents as training text
};

// Throws Error if the initial run was trained on the text for evaluation, whose fingerprint is `dev`, or on this text
// with a smaller end set aside. Other texts cannot be compared, because runs do not contain theirs.
void expect_untrained_dev(const std::string& init, const std::string& dev, const DevText& text);

// Copies the weights of a recommender to `parameters` of a model of this recipe: the first rows of tables of items, and
// all other parameters as a whole. Throws Error, naming the run's directory and the first value that differs, if
// anything but the number of items differs.
void start_from(const std::string& directory, const RecommenderRun& run, const RecommendationRecipe& recipe,
                ParameterList<float>& parameters);

}  // namespace qkv
