// What the training loop works on: batches of some data, their loss, and a score on data kept aside.
#pragma once

#include <string>

#include "data/batch_stream.h"
#include "model/transformer.h"
#include "qkv/training.h"

namespace qkv {

struct DevScore {
  double loss = 0;                                  // per target token, lower is better
  double metric = 0;                                // the task's own, higher is better
  std::vector<EvaluationReport::Measure> measures;  // these and others, for people
};

class Task {
 public:
  virtual ~Task() = default;

  // The data, whose batches depend on nothing but data, options and position. seek comes before all else, and is false
  // if there is no such batch; next() makes the next batch the present one.
  virtual std::string fingerprint() const = 0;
  virtual bool seek(const StreamPosition& position) = 0;
  virtual const StreamPosition& position() const = 0;
  virtual void next() = 0;
  virtual std::string summary() const = 0;                  // one line for people
  virtual std::string epoch_summary() const { return ""; }  // of the epoch before the present one; "": nothing to say

  // The weights that training starts from.
  virtual void initialise(ParameterList<float>& parameters, const TrainingConfig& config) const {
    parameters.initialise(static_cast<uint64_t>(config.seed), config.initial_deviation);
  }
  // Of the present batch; gradients are added to the model's.
  virtual Loss loss_and_gradient(const Transformer<float>& model, Context& c) = 0;
  // Called after every step of the optimiser.
  virtual void after_step(const Transformer<float>&) {}
  virtual DevScore evaluate(const Transformer<float>& model, Arena& arena) = 0;
  virtual std::string metric() const = 0;  // its name
  // What the model makes of its task, for people; shown after an evaluation. "": nothing.
  virtual std::string sample(const Transformer<float>&, Arena&) { return ""; }
  // Takes from the arena what the largest step of `model` and an evaluation of `candidate` will. Gradients are left
  // full of numbers.
  virtual void rehearse(const Transformer<float>& model, const Transformer<float>& candidate, Arena& arena) = 0;
  virtual size_t bytes() const { return 0; }  // of its own that its steps have taken so far, beside the arena's
};

}  // namespace qkv
