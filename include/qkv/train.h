// Training a translation model from parallel text into a run directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "qkv/config.h"

namespace qkv {

enum class TokenizerKind { unigram, bpe };
enum class Optimizer { adam, adamw };
enum class Schedule { inverse_sqrt, cosine };
enum class Selection { bleu, loss };

// How a model is trained; training.json of a run. Limits of 0 are off.
struct TrainingConfig {
  int64_t vocab_size = 10000;  // pieces of the tokeniser that is trained from the text
  TokenizerKind tokenizer = TokenizerKind::unigram;
  bool joint_vocabulary = true;  // one tokeniser for both languages
  bool lowercase = false;        // both sides, before anything else

  Optimizer optimizer = Optimizer::adam;
  double learning_rate = 5e-3;  // at its peak, at the end of the warm-up
  int64_t warmup_steps = 2000;
  Schedule schedule = Schedule::inverse_sqrt;  // cosine falls to 0 at max_steps
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double weight_decay = 0;
  double clip_norm = 0;  // of the mean gradient of a token
  double label_smoothing = 0.1;
  int64_t batch_tokens = 4096;  // at most, on either side
  int64_t accumulate = 1;       // batches whose gradients make one step

  int64_t max_steps = 0, max_epochs = 0;
  double max_minutes = 0;
  int64_t eval_every = 500;               // steps between evaluations on the dev text
  int64_t save_every = 500;               // steps between saved states; an evaluation saves too
  int64_t patience = 0;                   // evaluations without a better one before training stops
  Selection selection = Selection::bleu;  // what "better" means on the dev text
  int64_t average = 5;                    // the weights of the last k evaluations are averaged as a candidate
  double ema_decay = 0.999;               // so is an exponential moving average; 0 turns it off
  uint64_t seed = 1;

  bool operator==(const TrainingConfig&) const = default;
};

struct Recipe {
  ModelConfig model;
  TrainingConfig training;
};

// "tiny" (d 128, 4 heads, ffn 256, 4 + 4 layers), "small" (d 256, 4, 1024, 6 + 6) or "base" (d 512, 8, 2048, 6 + 6).
// Throws Error for another name.
Recipe preset(const std::string& name);

// Every value of a recipe by name, for a command line: "d_model", "learning_rate", …
struct RecipeOption {
  std::string name, value, help;
};
std::vector<RecipeOption> recipe_options(const Recipe& recipe);
// Throws Error if there is no such name or the value does not parse.
void set_recipe_option(Recipe& recipe, const std::string& name, const std::string& value);
// A JSON object of some of these names. Throws Error, naming `where`, for unknown names and wrong types.
void merge_recipe_json(Recipe& recipe, const std::string& text, const std::string& where);

struct TranslationFiles {
  std::vector<std::string> train, dev;             // two line-aligned files, or one file of source TAB target
  std::string source_tokenizer, target_tokenizer;  // existing SentencePiece models; trained from the text if empty
};

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
  struct Candidate {
    std::string name;  // "last", "average", "ema"
    double loss = 0, perplexity = 0, bleu = 0;
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

// Trains into the directory `out`. A run that is there already is resumed where it was saved last, and ends with the
// same bytes as one that was never interrupted; it must have the recipe given, but for the limits max_*. Throws Error
// for text, options or files that will not do.
void train_translation(const TranslationFiles& files, const Recipe& recipe, const std::string& out,
                       const TrainingObserver& observer);

}  // namespace qkv
