// Training text classifiers and cross-encoders from texts, or pairs of texts, with labels or numbers. The run
// classifies texts and orders texts by a query (qkv/classifier.h). docs/train-classifiers.md.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "qkv/pooling_choice.h"
#include "qkv/text_head.h"
#include "qkv/text_loss.h"
#include "qkv/training.h"

namespace [[gnu::visibility("default")]] qkv {

// The training of a classifier, labels.json of its run.
struct LabelTrainingConfig {
  LabelLoss loss = LabelLoss::automatic;
  std::string label_separator = "";
  std::vector<std::string> class_weights = {};
  PoolingChoice pooling = PoolingChoice::same;
  HeadActivation head_activation = HeadActivation::tanh;
  double head_dropout = 0.1;
  int64_t examples = 32;
  int64_t max_length = 0;
  double dev_share = 0.1;

  bool operator==(const LabelTrainingConfig&) const = default;
};

// Calls visit(name, member, field) for every field. This list defines labels.json and the command line.
template <class Visitor>
void visit_fields(LabelTrainingConfig& c, Visitor&& visit) {
  visit("loss", c.loss,
        {"Loss of a row: softmax for one of several labels, sigmoid for several labels at once or a number from 0 to "
         "1, squared for a number; pairwise or listwise for texts of one query, which are consecutive rows; automatic "
         "follows from the labels",
         "data",
         {},
         kCommon});
  visit("label_separator", c.label_separator,
        {"Text between the labels of a row, which may then have several or none, such as a comma; empty: a row has one "
         "label, whatever the loss, or a JSON array of labels",
         "data",
         {},
         kCommon});
  visit("class_weights", c.class_weights,
        {"Weights of labels in the loss: balanced, or a list such as spam=2,other=0.5; a label without a weight has 1",
         "data"});
  visit("pooling", c.pooling,
        {"How the tokens' hidden states become one vector; same: as the initial run, but first for a new head of an "
         "encoder",
         "model",
         {},
         kCommon});
  visit("head_activation", c.head_activation, {"Activation function of the hidden layer of a new head", "model"});
  visit("head_dropout", c.head_dropout,
        {"Dropout probability of the vector of a text and of the hidden layer of the head", "model",
         between(0, 1).without_max()});
  visit("examples", c.examples,
        {"Rows per batch; with pairwise and listwise, as many whole queries as fit, at least one", "data",
         between(1, 1 << 20), kCommon});
  visit("max_length", c.max_length,
        {"Maximum number of tokens of a text or pair, special tokens included; longer ones are truncated; 0 means as "
         "in the initial run",
         "data", between(0, 1 << 24), kCommon});
  visit("dev_share", c.dev_share,
        {"Share of the rows, chosen at random, that is used for evaluation if there is no dev file", "data",
         between(0, 1).without_min().without_max()});
}

// Throws Error, naming the field, for a value outside its range.
void check(const LabelTrainingConfig& config);

struct ClassifierRecipe : Recipe {
  LabelTrainingConfig labels;
  // As in LanguageRecipe (qkv/language.h). If true, a new run also chooses warmup_steps, a tenth of its steps and at
  // least 1, unless `given` names it.
  bool fit = false;
  std::set<std::string> given = {};
};

// Returns the recipe for a run from which training starts: an encoder, a classifier or a language model. It has the
// run's model, of which only dropout may be changed. Without a run, the values that do not depend on it.
ClassifierRecipe classifier_fine_tuning(const std::string& run);
ClassifierRecipe classifier_fine_tuning();

// Returns the recipe of a choice as translation_recipe does. There are no presets: init must be set. If max_steps is
// given and max_epochs is not, max_epochs becomes 0.
ClassifierRecipe classifier_recipe(const RecipeChoice& choice);

struct ClassifierFiles {
  // Rows of one or two texts and a label: CSV, TSV or JSON lines, also of gzip or zstd.
  std::string train;
  // Rows for evaluation; "": some of those of `train`, at most 10,000, the same in every run with one dev_share.
  std::string dev = "";
  // Names or numbers (from 1) of the columns: text and label, or text, text and label. Empty: usual names, or all
  // columns in their order.
  std::vector<std::string> columns = {};
  std::vector<std::string> dev_columns = {};  // the same of `dev`; empty: those of `columns`
  std::string init = "";  // the run that training starts from: an encoder, a classifier or a language model
};

// Trains a classifier and writes it to the run directory `out`. Returns false if should_stop ended training early. A
// run is resumed as by train_translator; `init` is not read then.
//
// Labels are in the order of their text, or of their values if all are numbers. The head of an initial run that is a
// classifier is kept if it has the same labels, or one logit for a number, and the same pooling and activation;
// otherwise the head is new. An end token follows each text of a pair of a language model. Losses are per row, and
// numbers of tokens in reports are numbers of rows. batch_tokens is the number of tokens that are computed at once; a
// batch of more is computed in parts, with the same gradient but for dropout masks. Scores on the dev rows: accuracy
// and F1 for labels; Spearman's correlation and the mean squared error for numbers; NDCG@10 and MRR@10 for texts of
// one query, where texts are relevant if their number is above the least of the query's. device must be cpu or
// automatic, which is cpu; r_drop must be 0. An adapter (lora_rank) is trained with the head. In memory are at most 32
// bytes for each row, and the labels. Throws Error, naming the line, for rows that cannot be used, and for invalid
// options or files.
bool train_classifier(const ClassifierFiles& files, const ClassifierRecipe& recipe, const std::string& out,
                      const TrainingObserver& observer, const RankOptions& ranks = {});

}  // namespace qkv
