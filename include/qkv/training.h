// Training of every kind of model: its configuration, recipes, and what training reports.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qkv/config.h"
#include "qkv/field.h"
#include "qkv/placement.h"
#include "qkv/text_head.h"

namespace [[gnu::visibility("default")]] qkv {

enum class Optimizer { adam, adamw };
constexpr std::array<std::string_view, 2> names_of(Optimizer) { return {"adam", "adamw"}; }

enum class Schedule { inverse_sqrt, cosine, constant };
constexpr std::array<std::string_view, 3> names_of(Schedule) { return {"inverse_sqrt", "cosine", "constant"}; }

enum class Selection { metric, loss };
constexpr std::array<std::string_view, 2> names_of(Selection) { return {"metric", "loss"}; }

// The type of Adam's moments. The two moments of a parameter take 8, 4 or about 2 bytes.
enum class Moments { float32, bfloat16, int8 };
constexpr std::array<std::string_view, 3> names_of(Moments) { return {"float32", "bfloat16", "int8"}; }

// The numbers that the linear layers multiply in training. Weights and gradients are float32. bfloat16, which is for
// devices, is also the type of activations.
enum class Precision { float32, int8, bfloat16 };
constexpr std::array<std::string_view, 3> names_of(Precision) { return {"float32", "int8", "bfloat16"}; }

// The training configuration, training.json of a run. A limit of 0 is off. visit_fields below describes every field.
struct TrainingConfig {
  Optimizer optimizer = Optimizer::adam;
  double learning_rate = 5e-3;  // at its peak
  int64_t warmup_steps = 2000;
  Schedule schedule = Schedule::inverse_sqrt;
  double cooldown = 0;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  Moments moments = Moments::float32;
  double weight_decay = 0;
  double clip_norm = 0;
  double label_smoothing = 0.1;
  double r_drop = 0;  // Liang et al., "R-Drop: Regularized Dropout for Neural Networks" (2021)
  int64_t batch_tokens = 4096;
  int64_t accumulate = 1;
  int64_t shards = 1;
  int64_t growth_steps = 0;
  bool recompute = false;
  // On a device, float32 becomes bfloat16 unless `given` of the recipe names precision: set_recipe_option and
  // merge_recipe_json add it; C++ code that assigns float32 here adds it with recipe.given.insert("precision").
  Precision precision = Precision::float32;
  ComputeDevice device = ComputeDevice::cpu;  // scores on the dev data are computed by the CPU

  int64_t max_steps = 0, max_epochs = 0;
  double max_minutes = 0;
  int64_t eval_every = 500;
  int64_t save_every = 500;
  double save_minutes = 10;
  int64_t patience = 0;
  int64_t max_skipped_steps = 10;
  double rollback_on_spike = 0;
  bool detect_anomaly = false;
  Selection selection = Selection::metric;
  int64_t average = 5;
  double ema_decay = 0.999;
  double initial_deviation = 0;
  int64_t seed = 1;

  std::vector<std::string> freeze = {};
  int64_t lora_rank = 0;
  double lora_alpha = 0;
  std::vector<std::string> lora_targets = {};

  bool operator==(const TrainingConfig&) const = default;
};

// The group of fields that can only be set for translators, language models and encoders.
inline constexpr std::string_view kFineTuningGroup = "fine-tuning";

// Calls visit(name, member, field) for every field. This list defines training.json and the command line.
template <class Visitor>
void visit_fields(TrainingConfig& c, Visitor&& visit) {
  constexpr Range kRate = between(0, 1).without_max(), kCount = at_least(0), kWeight = at_least(0);
  visit("optimizer", c.optimizer, {"Adam, or AdamW, which decouples weight decay from the gradient", "optimizer"});
  visit("learning_rate", c.learning_rate,
        {"Peak learning rate, reached at the end of the warm-up", "optimizer", kWeight, kCommon});
  visit("warmup_steps", c.warmup_steps,
        {"Steps over which the learning rate rises linearly to its peak; 0 starts at the peak", "optimizer", kCount});
  visit("schedule", c.schedule,
        {"Learning rate after the warm-up: falls with 1/sqrt(step), falls to 0 as a cosine, or stays", "optimizer"});
  visit("cooldown", c.cooldown,
        {"Share of training at its end, by the limit that comes first (max_steps, max_epochs or max_minutes), in which "
         "the learning rate falls linearly to 0; a cosine ends at max_steps by itself; 0 is off",
         "optimizer", between(0, 1)});
  visit("beta1", c.beta1, {"Decay rate of Adam's mean of gradients", "optimizer", kRate});
  visit("beta2", c.beta2, {"Decay rate of Adam's mean of squared gradients", "optimizer", kRate});
  visit("epsilon", c.epsilon, {"Added to the denominator of Adam's update", "optimizer", kWeight});
  visit("moments", c.moments, {"Type of Adam's two moments: 8, 4 or about 2 bytes per parameter", "optimizer"});
  visit("weight_decay", c.weight_decay,
        {"Weight decay: adam adds this times the weight to its gradient, adamw shrinks the weight by this times the "
         "learning rate; 0 is off",
         "optimizer", kWeight});
  visit("clip_norm", c.clip_norm,
        {"Maximum norm of the mean gradient per token; a larger gradient is scaled down to it; 0 is off", "optimizer",
         kWeight});
  visit(
      "label_smoothing", c.label_smoothing,
      {"Probability mass spread evenly over the vocabulary in the target distribution; 0 is off", "optimizer", kRate});
  visit("r_drop", c.r_drop,
        {"Weight of the R-Drop loss between two passes with different dropout; 0 is one pass", "optimizer", kWeight});
  visit("batch_tokens", c.batch_tokens,
        {"Maximum tokens per batch (of a translator: on each side)", "data", at_least(1), kCommon});
  visit("accumulate", c.accumulate,
        {"Batches per shard of an optimizer step; gradients are averaged over all tokens of the step", "optimizer",
         at_least(1)});
  visit("shards", c.shards,
        {"Shards per optimizer step, of accumulate batches each; their gradients are summed in a fixed order",
         "optimizer", between(1, 4096)});
  visit("growth_steps", c.growth_steps,
        {"Steps over which the batches per shard rise from 1 to accumulate; 0 is off", "optimizer", kCount});
  visit("recompute", c.recompute,
        {"Recompute activations in the backward pass: less memory, more time, the same result", "optimizer"});
  visit("precision", c.precision,
        {"Numbers that linear layers multiply: float32; on a CPU also int8, which is faster and rounds more; on a "
         "device bfloat16, which is its default",
         "optimizer"});
  visit("device", c.device,
        {"Where the model is trained: cpu; cuda, a device plugin; or auto, which is cuda if a plugin finds a device",
         "optimizer"});
  visit("max_steps", c.max_steps, {"Stop after this many steps; 0 is no limit", "checkpoints", kCount, kCommon});
  visit("max_epochs", c.max_epochs,
        {"Stop after this many passes over the data; 0 is no limit", "checkpoints", kCount, kCommon});
  visit("max_minutes", c.max_minutes,
        {"Stop after this many minutes of training; 0 is no limit", "checkpoints", kWeight});
  visit("eval_every", c.eval_every,
        {"Steps between evaluations on the dev data; 0 means only at the end (of a recommender or a classifier: once "
         "per epoch)",
         "checkpoints", kCount});
  visit("save_every", c.save_every,
        {"Steps between saved states; 0 saves only after evaluations, when stopped and by save_minutes", "checkpoints",
         kCount});
  visit("save_minutes", c.save_minutes,
        {"Also save the state when this many minutes have passed since it was last saved; 0 is off", "checkpoints",
         kWeight});
  visit("patience", c.patience,
        {"Stop after this many evaluations without improvement; 0 is off", "checkpoints", kCount});
  visit("max_skipped_steps", c.max_skipped_steps,
        {"Steps in a row that may be skipped because their loss or gradient is not finite; one more ends training",
         "checkpoints", kCount});
  visit("rollback_on_spike", c.rollback_on_spike,
        {"Return to the state of the last evaluation or save_every, and continue with the next batches, if a loss is "
         "above the median of the last 100 by more than this times their median absolute deviation; 0 is off",
         "checkpoints", kWeight});
  visit(
      "detect_anomaly", c.detect_anomaly,
      {"Check the output of every op, forward and backward, and end training at the first that is not finite: slower, "
       "the same result",
       "checkpoints"});
  visit(
      "selection", c.selection,
      {"How the best weights are chosen on the dev data: by the metric (BLEU, bits per byte, perplexity or NDCG@10) or "
       "by the loss",
       "checkpoints"});
  visit("average", c.average,
        {"Also evaluate the mean of the weights of this many latest evaluations, and keep it if it is best; 0 and 1 "
         "are off",
         "checkpoints", kCount});
  visit("ema_decay", c.ema_decay,
        {"Also evaluate an exponential moving average of the weights with this decay, and keep it if it is best; 0 is "
         "off",
         "checkpoints", kRate});
  visit("initial_deviation", c.initial_deviation,
        {"Standard deviation of the initial weights; 0 uses Glorot's uniform distribution, for embeddings "
         "1/sqrt(d_model), for learned positions 0.02",
         "optimizer", kWeight});
  visit("seed", c.seed, {"Seed of initial weights, shuffling and dropout", "optimizer", kCount});
  visit("freeze", c.freeze,
        {"Parameters that keep their values: patterns such as embeddings, encoder, layers.0-3, or parts of their names",
         kFineTuningGroup});
  visit("lora_rank", c.lora_rank,
        {"Train a low-rank adapter (LoRA) of this rank and no other parameter but a text head; 0 trains the model",
         kFineTuningGroup,
         between(0, 65536)});
  visit("lora_alpha", c.lora_alpha,
        {"Scale of the adapter: its update is multiplied by this / lora_rank; 0 means 2 lora_rank", kFineTuningGroup,
         kWeight});
  visit("lora_targets", c.lora_targets,
        {"Linear layers that the adapter changes: patterns as in freeze; none: all of attention and feed-forward",
         kFineTuningGroup});
}

// Throws Error, naming the field, for a value outside its range.
void check(const TrainingConfig& config);

// The part that every recipe has.
struct Recipe {
  ModelConfig model;
  TrainingConfig training;
  ItemInputs items;          // of a recommender, set from the data
  TextHeadConfig head = {};  // of an embedder or a classifier, set from the data
};

// A value of a recipe as text, with its description.
struct RecipeOption {
  enum class Type { boolean, integer, number, text, choice, list, integers };

  std::string name, value;  // "learning_rate", "0.005"; elements of a list and of integers are separated by commas
  Type type = Type::text;
  std::string help;      // what it does
  std::string accepted;  // accepted values, such as "at least 0"; "" for any
  std::string group;     // "model", "optimizer", "data" or "checkpoints"
  bool common = false;   // one of those that are used most
};

// Returns the values that can be set in a recipe: a TranslationRecipe (qkv/train.h), a RecommendationRecipe
// (qkv/recommendation.h), a LanguageRecipe (qkv/language.h), an EncoderRecipe (qkv/encoder.h), an EmbedderRecipe
// (qkv/embedder_training.h) or a ClassifierRecipe (qkv/classifier_training.h).
template <class R>
std::vector<RecipeOption> recipe_options(const R& recipe);

// Names and values as text.
using RecipeValues = std::vector<std::pair<std::string, std::string>>;

// Change a recipe: one value as text, several, or a JSON object with some of the names. Some values follow unless they
// are given too: key_width and value_width become d_model / heads if d_model or heads is given, final_norm follows
// norm_position, and shared_embeddings follows joint_vocabulary. Throw Error for unknown names and invalid values, and
// leave the recipe as it was. `where` names the source of the text in errors.
template <class R>
void set_recipe_option(R& recipe, const std::string& name, const std::string& value);
template <class R>
void set_recipe_options(R& recipe, const RecipeValues& values);
template <class R>
void merge_recipe_json(R& recipe, const std::string& text, const std::string& where);

// The choice of a recipe, on the command line and in Python. translation_recipe (qkv/train.h), recommendation_recipe
// (qkv/recommendation.h), language_recipe (qkv/language.h), encoder_recipe (qkv/encoder.h), embedder_recipe
// (qkv/embedder_training.h) and classifier_recipe (qkv/classifier_training.h) return the recipe. A recommender's recipe
// does not depend on init and out.
struct RecipeChoice {
  std::string preset = {};   // "": the usual one
  std::string config = {};   // a JSON file with values by their names in training.json; "": none
  RecipeValues values = {};  // take precedence over those of the file
  std::string init = {};     // a run to fine-tune, which takes the place of the preset; "": none
  std::string out = {};      // the run to write; if it exists, it takes the place of init, which need no longer exist
};

// One training step, as it is also written to metrics.jsonl.
struct StepReport {
  int64_t step = 0, epoch = 0;
  int64_t max_steps = 0, max_epochs = 0;  // limits; 0: none
  double loss = 0, nll = 0;               // per target token, natural logarithm
  double learning_rate = 0, gradient_norm = 0;
  int64_t skipped_steps = 0;  // so far: steps that were not applied, because loss or gradient was not finite
  int64_t rollbacks = 0;      // so far: returns to an earlier state after a loss far above the recent ones
  int64_t target_tokens = 0;
  double seconds = 0;            // since the start of the run, including the time before it was resumed
  double tokens_per_second = 0;  // target tokens of this step divided by its time
  // With several shards, the number of target tokens above which a larger step gains little (McCandlish et al., 2018);
  // averaged over about 100 steps since training was started or resumed. 0: unknown.
  double noise_scale = 0;
};

// One evaluation on the dev data.
struct EvaluationReport {
  int64_t step = 0;
  struct Measure {
    std::string name;  // "loss", "bleu", "NDCG@10", …
    double value = 0;
    int digits = 0;  // significant decimal places
  };
  struct Candidate {
    std::string name;  // "last", "average" or "ema"
    std::vector<Measure> measures;
  };
  std::vector<Candidate> candidates;
  std::vector<Candidate> baselines;  // simpler models on the same data, the same in every evaluation
  std::string best;                  // name of the best candidate
  bool improved = false;             // best is the best so far and becomes the model of the run
};

// Functions that training calls. Empty ones are skipped.
struct TrainingObserver {
  std::function<void(const std::string&)> on_message;  // one line: the data, memory, the reason for the end, …
  std::function<void(const StepReport&)> on_step;
  std::function<void(const EvaluationReport&)> on_evaluation;
  std::function<bool()> should_stop;  // called after every step; if true, training saves its state and returns
};

// How several processes that train one run find each other.
//   automatic  as the launcher says: one process if there is none
//   mpi        by MPI: mpirun, srun and others
//   local      on one machine, by the plugin qkv_local
//   off        one process
enum class Distributed { automatic, mpi, local, off };
constexpr std::array<std::string_view, 4> names_of(Distributed) { return {"auto", "mpi", "local", "off"}; }

// Training by several processes, called ranks. All are started with the same arguments. Rank 0 writes the run and calls
// the observer; on the others, the observer is only asked whether training should stop. Each rank computes some of the
// shards of a step, so there must be at least as many shards as ranks; the number of ranks changes no byte of the run.
// A rank that fails, dies or is not heard for `timeout` ends all of them. Rank 0 throws Error, naming the rank; the
// training functions of the others return false.
struct RankOptions {
  Distributed distributed = Distributed::off;
  double timeout = 120;  // seconds without a sign of life after which a rank counts as dead; at least 1
  // Called with the reason, by another thread, before all ranks are killed, this one included: those that do not end by
  // themselves within 10 seconds after a failure. May be empty.
  std::function<void(const std::string&)> on_abort = {};
};

}  // namespace qkv
