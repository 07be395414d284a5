// How any model is trained: its configuration, values of a recipe by name, and what training reports.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/config.h"

namespace qkv {

enum class Optimizer { adam, adamw };
constexpr std::array<std::string_view, 2> names_of(Optimizer) { return {"adam", "adamw"}; }

enum class Schedule { inverse_sqrt, cosine, constant };
constexpr std::array<std::string_view, 3> names_of(Schedule) { return {"inverse_sqrt", "cosine", "constant"}; }

enum class Selection { metric, loss };
constexpr std::array<std::string_view, 2> names_of(Selection) { return {"metric", "loss"}; }

// How Adam's means of gradients and squares are held: 8, 4 or about 2 bytes a parameter.
enum class Moments { float32, bfloat16, int8 };
constexpr std::array<std::string_view, 3> names_of(Moments) { return {"float32", "bfloat16", "int8"}; }

// How a model is trained; training.json of a run. Limits of 0 are off.
struct TrainingConfig {
  Optimizer optimizer = Optimizer::adam;
  double learning_rate = 5e-3;  // at its peak, at the end of the warm-up
  int64_t warmup_steps = 2000;
  Schedule schedule = Schedule::inverse_sqrt;  // after it; cosine falls to 0 at max_steps, or max_epochs
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  Moments moments = Moments::float32;
  double weight_decay = 0;
  double clip_norm = 0;  // of the mean gradient of a token
  double label_smoothing = 0.1;
  double r_drop = 0;            // weight of the agreement of two passes with other dropout (Liang et al., 2021)
  int64_t batch_tokens = 4096;  // at most, on either side
  int64_t accumulate = 1;       // batches whose gradients make one step
  int64_t growth_steps = 0;     // over which the batches of a step rise from 1 to `accumulate`
  bool recompute = false;       // less memory, more work: backward computes the activations of each layer again

  int64_t max_steps = 0, max_epochs = 0;
  double max_minutes = 0;
  int64_t eval_every = 500;                 // steps between evaluations on the dev data
  int64_t save_every = 500;                 // steps between saved states; an evaluation saves too
  int64_t patience = 0;                     // evaluations without a better one before training stops
  Selection selection = Selection::metric;  // what "better" means on the dev data: the metric of the task, or its loss
  int64_t average = 5;                      // the weights of the last k evaluations are averaged as a candidate
  double ema_decay = 0.999;                 // so is an exponential moving average; 0 turns it off
  double initial_deviation = 0;             // of all weights before training; 0: each kind's own (layers/parameter.h)
  int64_t seed = 1;

  bool operator==(const TrainingConfig&) const = default;
};

// Calls visit(name, member, field) for every field: the one list behind training.json and the command line.
template <class Visitor>
void visit_fields(TrainingConfig& c, Visitor&& visit) {
  visit("optimizer", c.optimizer, "adamw decouples the weight decay");
  visit("learning_rate", c.learning_rate, "at its peak, after the warm-up");
  visit("warmup_steps", c.warmup_steps, "steps of linear rise to the peak");
  visit("schedule", c.schedule, "how the learning rate falls after the warm-up");
  visit("beta1", c.beta1, "decay of Adam's mean of gradients");
  visit("beta2", c.beta2, "decay of Adam's mean of squared gradients");
  visit("epsilon", c.epsilon, "added to Adam's denominator");
  visit("moments", c.moments, "how the optimiser holds Adam's two means: 8, 4 or 2 bytes a parameter");
  visit("weight_decay", c.weight_decay, "pull of every weight towards zero");
  visit("clip_norm", c.clip_norm, "largest norm of the mean gradient; 0 is off");
  visit("label_smoothing", c.label_smoothing, "probability spread over the whole vocabulary");
  visit("r_drop", c.r_drop, "weight of the agreement of two passes with dropout of their own; 0 is one pass");
  visit("batch_tokens", c.batch_tokens, "most tokens of a batch; of a translator, on either side");
  visit("accumulate", c.accumulate, "batches that make one step");
  visit("growth_steps", c.growth_steps, "steps over which their number rises from 1 to --accumulate; 0 is off");
  visit("recompute", c.recompute, "compute activations again in backward, to hold fewer; the result is the same");
  visit("max_steps", c.max_steps, "stop after so many steps; 0 is off");
  visit("max_epochs", c.max_epochs, "stop after so many passes over the data; 0 is off");
  visit("max_minutes", c.max_minutes, "stop after so many minutes; 0 is off");
  visit("eval_every", c.eval_every, "steps between evaluations on the dev data");
  visit("save_every", c.save_every, "steps between saved states");
  visit("patience", c.patience, "stop after so many evaluations without a better one; 0 is off");
  visit("selection", c.selection, "what is better on the dev data: the metric of the task, or its loss");
  visit("average", c.average, "evaluations whose weights are averaged");
  visit("ema_decay", c.ema_decay, "decay of the moving average of the weights; 0 is off");
  visit("initial_deviation", c.initial_deviation,
        "standard deviation of all weights before training; 0: Glorot's, embeddings 1/root of d_model");
  visit("seed", c.seed, "of initial weights, shuffling and dropout");
}

// Throws Error, naming the value, for one that makes no sense.
void check(const TrainingConfig& config);

// What every recipe has.
struct Recipe {
  ModelConfig model;
  TrainingConfig training;
};

// A value by name, for a command line: "d_model", "learning_rate", …
struct RecipeOption {
  std::string name, value, help;
};

// Every value of a recipe: a TranslationRecipe (qkv/train.h) or a RecommendationRecipe (qkv/recommendation.h).
template <class R>
std::vector<RecipeOption> recipe_options(const R& recipe);

// A change of a recipe: names with values as text, or a JSON object of some of the names. d_model or heads alone also
// change key_width and value_width to d_model / heads, norm_position turns final_norm on or off with it, and
// joint_vocabulary shared_embeddings. Throws Error, naming `where`, for unknown names and values that do not parse.
template <class R>
void set_recipe_option(R& recipe, const std::string& name, const std::string& value);
template <class R>
void merge_recipe_json(R& recipe, const std::string& text, const std::string& where);

// One step, as it is also written to metrics.jsonl.
struct StepReport {
  int64_t step = 0, epoch = 0, max_steps = 0;
  double loss = 0, nll = 0;  // per target token, natural logarithm
  double learning_rate = 0, gradient_norm = 0;
  int64_t target_tokens = 0;
  double seconds = 0;            // since the start of the run, earlier sessions included
  double tokens_per_second = 0;  // target tokens of this step over its time
};

struct EvaluationReport {
  int64_t step = 0;
  struct Measure {
    std::string name;  // "loss", "bleu", "NDCG@10", …
    double value = 0;
    int digits = 0;  // after the point that are worth printing
  };
  struct Candidate {
    std::string name;  // "last", "average", "ema"
    std::vector<Measure> measures;
  };
  std::vector<Candidate> candidates;
  std::string best;       // the candidate that is best now
  bool improved = false;  // it is the best of the run and now served by the run directory
};

struct TrainingObserver {
  std::function<void(const std::string&)> on_message;  // one line: what was read, memory, why training ended
  std::function<void(const StepReport&)> on_step;
  std::function<void(const EvaluationReport&)> on_evaluation;
  std::function<bool()> should_stop;  // asked after every step; true saves the state and returns
};

}  // namespace qkv
