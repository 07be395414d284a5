// The interface between the training loop and the data of one kind of model: batches, their loss, and a score on dev
// data.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/batch_stream.h"
#include "io/runs/run_directory.h"
#include "model/layers/finite_check.h"
#include "model/transformer.h"
#include "qkv/training.h"
#include "ranks/rank_partition.h"

namespace qkv {

class BatchGradients;
class StepTable;

// The measure that selects the best weights.
struct Metric {
  std::string name;
  bool higher_is_better = true;
};

struct DevScore {
  double loss = 0;    // per target token
  double metric = 0;  // the value of Task::metric()
  // A measure that also counts as an improvement, for `patience`; higher is better.
  std::optional<double> learned = {};
  std::vector<EvaluationReport::Measure> measures;  // all that is reported
  // Writes the files of the run that belong to these weights, which become its model; may be empty.
  std::function<void(const RunDirectory&)> write_more = {};
  bool breaks_ties = false;  // whether a lower loss decides between equal values of the metric, as small data have them
};

class Task {
 public:
  virtual ~Task() = default;

  // Identifies the training data in saved states.
  virtual std::string fingerprint() const = 0;
  // Divides evaluation and the preparation of data among ranks. All of them then call seek, look_ahead, evaluate,
  // baselines and dry_run together, and get the same results.
  virtual void partition(const RankPartition& partition) = 0;
  // Moves to a batch. Must be called before the functions below. Returns false if there is no such batch.
  virtual bool seek(const StreamPosition& position) = 0;
  // Returns the position of the next batch.
  virtual const StreamPosition& position() const = 0;
  // Makes the next batch the current one. Batches depend only on data, options and position.
  virtual void next() = 0;
  // Moves past the next batch.
  virtual void skip() = 0;
  // Announces the number of batches before the next call of look_ahead, so that ranks can exchange what these need.
  virtual void look_ahead(int64_t) {}
  // Returns the part of the current epoch that precedes the next batch, in [0, 1).
  virtual double part_of_epoch() const = 0;
  // Returns the number of batches of an epoch, or about how many there are if batches are made during training.
  virtual double batches_per_epoch() const = 0;
  // Describes the data in one line.
  virtual std::string summary() const = 0;
  // Describes the previous epoch in one line; "" if there is nothing to report.
  virtual std::string epoch_summary() const { return ""; }

  // Returns the loss of the current batch and adds its gradients to the model's.
  virtual Loss loss_and_gradient(BatchGradients& gradients, Context& c) = 0;
  // Whether small models compute the gradient of a batch in slices (model/replicas.h).
  virtual bool in_slices() const { return true; }
  // Returns the rows that the current batch needs and their gradients, if the task computes those of a small table
  // instead of the model's (train/optimizer/step_table.h); otherwise null.
  virtual StepTable* step_table() { return nullptr; }
  // Called after every step of the optimizer.
  virtual void after_step(const Transformer<float>&) {}
  // Names the sequences of the current batch to which rows of one side belong, as a user finds them in the training
  // data: "line 17 of train.en". Without rows, names all of the batch, which was the next one at `position`. Used to
  // end training: needs no other rank, and moves to this position.
  virtual std::string places(const StreamPosition& position, TokenSide side, std::span<const int64_t> rows) = 0;
  // Scores a model on the dev data.
  virtual DevScore evaluate(const Transformer<float>& model, Arena& arena) = 0;
  virtual Metric metric() const = 0;
  // Scores simpler models on the dev data, once before the first step.
  virtual std::vector<EvaluationReport::Candidate> baselines() { return {}; }
  // Compares the best value of metric() with the baselines at the end of training, in one line; "" if it is above them.
  virtual std::string verdict(double) const { return ""; }
  // Returns an example of the model's output, which is reported after an evaluation; "" for none.
  virtual std::string sample(const Transformer<float>&, Arena&) { return ""; }
  // Uses as much of the arena as the largest training step and an evaluation of `candidate` will. Leaves
  // arbitrary values in the gradients.
  virtual void dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) = 0;
  // Returns the bytes of the training data, if it is in memory.
  virtual size_t data_bytes() const { return 0; }
  // Returns the bytes of activations that the task holds outside the arena.
  virtual size_t bytes() const { return 0; }
};

}  // namespace qkv
