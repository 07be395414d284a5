// The steps that training takes for every kind of model: check the values, prepare the data, resolve the recipe, open
// the run directory, train.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "io/atomic_file.h"
#include "io/runs/run_directory.h"
#include "io/runs/run_lock.h"
#include "qkv/training.h"
#include "train/fit_to_limits.h"
#include "train/loop/private_directory.h"
#include "train/loop/ranks.h"
#include "train/loop/resume.h"
#include "train/loop/trainer.h"
#include "train/optimizer/schedule.h"
#include "train/optimizer/trained_parts.h"
#include "train/tasks/task.h"

namespace qkv {

// The run directory that training writes, and the observer that it reports to.
struct TrainingSession {
  RunDirectory run;
  bool resumed;  // the run exists, and training continues it
  const TrainingObserver& observer;

  void report(const std::string& line) const {
    if (observer.on_message) observer.on_message(line);
  }
};

// The data of one kind of model, from which training starts. Data, made of the session, the given recipe and further
// inputs, has
//   kCountsBatches           whether the number of batches of an epoch is known before training; then
//                            batches(recipe) returns it
//   kFitsLimits              whether values of a new run follow from its limits
//   check(given, inputs…)    throws Error for invalid values
//   saved_recipe(run)        the recipe of a run to resume; throws Error for a run of another kind
//   set_sizes(recipe)        sets the sizes that follow from the data
//   set_limits(recipe)       sets the training values that follow from the data; the sizes are set and checked
//   make_task(recipe)        the task; recipe and data outlive it
//   create_run(run, recipe)  writes a new run directory

// The recipe with every value that follows from the data.
template <class Data, class R>
R resolve_recipe(R recipe, Data& data) {
  data.set_sizes(recipe);
  check(recipe.model, recipe.items);
  data.set_limits(recipe);
  return recipe;
}

// Checks that all ranks train on the same data, before rank 0 writes anything. It sends the files of the run to the
// others, which prepare their data from these. `create(run)` writes the files of a new run.
inline void agree(Ranks& ranks, const TrainingSession& session, const Task& task,
                  const std::function<void(const RunDirectory&)>& create) {
  if (ranks.is_first()) {
    if (session.resumed) {
      ranks.send_run(session.run);
    } else {
      const PrivateDirectory directory;
      const RunDirectory copy(directory.path() + "/run");
      create(copy);
      ranks.send_run(copy);
    }
  }
  ranks.agree("other training data than", task.fingerprint(), "all ranks must read the same files");
}

// Removes the run that this process has created again if it cannot be trained, for example for a lack of memory, so
// that the next command may have other options.
template <class MakeTrainer>
std::unique_ptr<Trainer> start_new_run(const RunDirectory& run, const MakeTrainer& make) {
  try {
    return make();
  } catch (...) {
    remove_directory_atomic(run.root());
    throw;
  }
}

// Trains a model on Data. Returns false if should_stop of the observer ended training early. `ranks` is null unless
// several processes train the run.
template <class Data, class R, class... Inputs>
bool train_on(const std::string& out, const TrainingObserver& observer, Ranks* ranks, const R& given,
              const Inputs&... inputs) {
  check(given.training);
  check_schedule(given.training, Data::kCountsBatches);
  check_last_step(given.training, given.training.max_steps);
  Data::check(given, inputs...);
  if (ranks) ranks->check_shards(given.training.shards);

  const TrainingSession session{RunDirectory(out), std::filesystem::exists(out), observer};
  std::optional<R> saved;
  std::optional<RunLock> lock;
  if (session.resumed) {
    saved = Data::saved_recipe(session.run);
    lock.emplace(session.run);
  }

  R wanted = given;
  if (saved) keep_fitted(wanted, *saved);
  if constexpr (Data::kFitsLimits && Data::kCountsBatches)
    if (!saved) prefer_given_epochs(wanted);
  Data data(session, wanted, inputs...);
  R recipe = resolve_recipe(wanted, data);
  if constexpr (Data::kCountsBatches)
    if (saved) check_cosine_end(session.run, *saved, recipe, data.batches(recipe));
  if (saved && ranks && !ranks->is_first()) check_same_as_first(*saved, recipe);
  if (saved && (!ranks || ranks->is_first())) check_same(session.run, *saved, recipe);
  check_freeze(recipe);

  const std::unique_ptr<Task> task = data.make_task(recipe);
  const bool is_new = !session.resumed;
  if (is_new) task->seek({});  // data without a batch throw here and leave no run behind
  if constexpr (Data::kFitsLimits)
    if (is_new)
      if (const std::string line = fit_to_limits(recipe, *task, ranks ? ranks->size() : 1); !line.empty())
        session.report(line);
  if (ranks) agree(*ranks, session, *task, [&](const RunDirectory& run) { data.create_run(run, recipe); });
  const auto make_trainer = [&] { return std::make_unique<Trainer>(recipe, session.run, *task, observer, ranks); };
  if (!is_new) return make_trainer()->train();
  data.create_run(session.run, recipe);
  lock.emplace(session.run);
  return start_new_run(session.run, make_trainer)->train();
}

}  // namespace qkv
