// The steps that training takes for every kind of model: check the values, prepare the data, resolve the recipe, open
// the run directory, train. Some values of a recipe may change when a run is resumed.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "device/open_device.h"
#include "io/atomic_file.h"
#include "io/runs/run_config.h"
#include "io/runs/run_directory.h"
#include "io/runs/run_lock.h"
#include "qkv/training.h"
#include "train/engine/device_engine.h"
#include "train/fit_to_limits.h"
#include "train/loop/private_directory.h"
#include "train/loop/ranks.h"
#include "train/loop/trainer.h"
#include "train/optimizer/schedule.h"
#include "train/optimizer/trained_parts.h"
#include "train/tasks/task.h"

namespace qkv {

// Sets the values that may change when a run of the recipe `saved` is resumed to those of `saved`.
inline void keep_limits(TrainingConfig& given, const TrainingConfig& saved) {
  if (saved.schedule != Schedule::cosine) given.max_steps = saved.max_steps;  // a cosine ends at max_steps
  given.max_epochs = saved.max_epochs;
  given.max_minutes = saved.max_minutes;
  given.save_minutes = saved.save_minutes;
  given.patience = saved.patience;
  given.max_skipped_steps = saved.max_skipped_steps;
  given.detect_anomaly = saved.detect_anomaly;
  given.recompute = saved.recompute;
}

// Sets values of the recipe `given` of a run that is resumed, which follow from its limits unless they are given, to
// those of the run.
template <class R>
void keep_fitted(R& given, const R& saved) {
  TrainingConfig& now = given.training;
  const TrainingConfig& before = saved.training;
  const auto is_free = [&](const char* name) { return given.fit && !given.given.contains(name); };
  if (is_free("warmup_steps")) now.warmup_steps = before.warmup_steps;
  if (is_free("learning_rate")) now.learning_rate = before.learning_rate;
  if (is_free("cooldown")) now.cooldown = before.cooldown;
  if (before.schedule == Schedule::cosine && (now.max_steps == 0 || is_free("max_steps")))
    now.max_steps = before.max_steps;
}

// Decides where a recipe is trained, and in which precision unless it is given. `saved` is the configuration of the run
// that is resumed, or null. Reports a plugin that was found or given and cannot be used.
template <class R>
void set_device(R& recipe, const TrainingConfig* saved, FunctionRef<void(const std::string&)> report) {
  TrainingConfig& c = recipe.training;
  if (c.device == ComputeDevice::automatic && saved) c.device = saved->device;
  if (c.device == ComputeDevice::automatic) {
    const DevicePlugin plugin = find_device_plugin();
    c.device = plugin.table ? ComputeDevice::cuda : ComputeDevice::cpu;
    if (!plugin.table && (plugin.exists || plugin.is_given))
      report(fmt::format("device: cpu, because {}", plugin.missing));
  }
  if (c.device != ComputeDevice::cpu && !recipe.given.contains("precision") && c.precision == Precision::float32)
    c.precision = saved ? saved->precision : Precision::bfloat16;
}

// Throws Error for a precision that the CPU does not have.
inline void check_for_cpu(const TrainingConfig& c) {
  if (c.precision == Precision::bfloat16) fail("precision bfloat16 requires a device (device is cpu)");
}

// Throws Error if max_epochs was chosen as the end of a cosine and is now another limit that training cannot reach.
// `batches` is the number of batches per epoch.
template <class R>
void check_cosine_end(const RunDirectory& run, const R& saved, const R& given, int64_t batches) {
  const TrainingConfig &before = saved.training, &now = given.training;
  if (before.schedule != Schedule::cosine || before.max_epochs == 0 || now.max_epochs == before.max_epochs) return;
  if (now.max_epochs > 0 && now.max_epochs < before.max_epochs) return;
  if (now.max_epochs == 0 && given.fit && !given.given.contains("max_epochs")) return;
  TrainingConfig of_epochs = before;
  of_epochs.max_steps = 0;
  set_cosine_end(of_epochs, batches);
  if (of_epochs.max_steps != before.max_steps) return;
  fail(
      "{}: max_epochs was {} when this run was started and is now {}; its schedule cosine ends after {} epochs: use "
      "the "
      "same value, or start another run from this one (init)",
      run.root(), before.max_epochs, now.max_epochs, before.max_epochs);
}

// The first value of a recipe that differs from another recipe's and may not.
struct Difference {
  std::string name, before, now;
};
template <class R>
std::optional<Difference> first_difference(const R& saved, R given) {
  keep_limits(given.training, saved.training);
  const std::vector<RecipeOption> before = recipe_options(saved), now = recipe_options(given);
  for (size_t i = 0; i < now.size(); i++)
    if (before[i].value != now[i].value) return Difference{now[i].name, before[i].value, now[i].value};
  return std::nullopt;
}

// Throws Error, naming the first value that differs and may not.
template <class R>
void check_same(const RunDirectory& run, const R& saved, const R& given) {
  if (const auto different = first_difference(saved, given))
    fail("{}: {} was {} when this run was started and is now {}; use the same value or another directory", run.root(),
         different->name, different->before, different->now);
}

// Throws Error, naming the first value that differs from the recipe of rank 0 and may not.
template <class R>
void check_same_as_first(const R& first, const R& given) {
  if (const auto different = first_difference(first, given))
    fail("{} is {}, but {} on rank 0; start all ranks with the same options", different->name, different->now,
         different->before);
}

// Throws Error if a run would be resumed where it was not started, before precisions are compared and a device is
// opened.
template <class R>
void check_same_device(const RunDirectory& run, const R& saved, const R& given) {
  R moved = saved;
  moved.training.device = given.training.device;
  check_same(run, saved, moved);
}

// Throws Error unless the directory is a run of this kind that training started.
inline void check_resumable(const RunDirectory& run, RunKind kind) {
  if (!std::filesystem::exists(run.training()))
    fail("{}: exists but has no training.json; expected a run that training started, or a new directory", run.root());
  expect_kind(run, read_config(run).kind, {kind});
}

// Reads the model and training.json of a run.
inline Recipe read_recipe(const RunDirectory& run) {
  const RunConfig config = read_config(run);
  return {config.model, read_fields<TrainingConfig>(run, run.training()), config.items};
}

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
  set_device(wanted, saved ? &saved->training : nullptr, [&](const std::string& line) { session.report(line); });
  if (ranks && wanted.training.device != ComputeDevice::cpu) fail("device must be cpu for training by several ranks");
  if (saved) check_same_device(session.run, *saved, wanted);
  const bool is_cpu = wanted.training.device == ComputeDevice::cpu;
  is_cpu ? check_for_cpu(wanted.training) : Data::check(wanted, inputs...);  // again: auto has become cuda
  const std::shared_ptr<Accelerator> device = is_cpu ? nullptr : open_device();
  if constexpr (Data::kFitsLimits && Data::kCountsBatches)
    if (!saved) prefer_given_epochs(wanted);
  Data data(session, wanted, inputs...);
  R recipe = resolve_recipe(wanted, data);
  if constexpr (Data::kCountsBatches)
    if (saved) check_cosine_end(session.run, *saved, recipe, data.batches(recipe));
  if (saved && ranks && !ranks->is_first()) check_same_as_first(*saved, recipe);
  if (saved && (!ranks || ranks->is_first())) check_same(session.run, *saved, recipe);
  check_freeze(recipe);
  if (device) {
    check_for_device(recipe);
    session.report(fmt::format("device: {}, {}", device->name(), name_of(recipe.training.precision)));
  }

  const std::unique_ptr<Task> task = data.make_task(recipe);
  if (device && task->step_table()) fail("sparse_updates must be off on a device");
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
