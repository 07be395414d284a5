// Training an embedder of texts: an encoder or a language model learns to give texts with similar meanings similar
// vectors, from pairs, scores or the vectors of another embedder. Reimers and Gurevych, "Sentence-BERT" (2019).
// docs/train-embedders.md. The run embeds texts (qkv/embedder.h).
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/pooling_choice.h"
#include "qkv/text_head.h"
#include "qkv/text_loss.h"
#include "qkv/training.h"

namespace [[gnu::visibility("default")]] qkv {

// Whether a run divides its vectors by their norm; same: as the initial run.
enum class NormalizeChoice { same, on, off };
constexpr std::array<std::string_view, 3> names_of(NormalizeChoice) { return {"same", "on", "off"}; }

// The values of the training of an embedder, embedder.json of its run.
struct EmbedderConfig {
  VectorLoss loss = VectorLoss::automatic;
  Similarity similarity = Similarity::cosine;
  double temperature = 0.05;
  bool learn_temperature = false;
  bool symmetric = false;
  bool keep_repeated = false;
  std::vector<int64_t> matryoshka = {};
  double score_min = 0, score_max = 0;
  bool teacher_first = false;
  PoolingChoice pooling = PoolingChoice::same;
  NormalizeChoice normalize = NormalizeChoice::same;
  int64_t dense = 0;
  DenseActivation dense_activation = DenseActivation::tanh;
  int64_t max_length = 0;
  int64_t examples = 64;
  double dev_share = 0.1;

  bool operator==(const EmbedderConfig&) const = default;
};

// Calls visit(name, member, field) for every field. This list defines embedder.json and the command line.
template <class Visitor>
void visit_fields(EmbedderConfig& c, Visitor&& visit) {
  constexpr Range kShare = between(0, 1).without_min().without_max();
  visit("loss", c.loss,
        {"Loss: of pairs of texts (info_nce), of two texts and a score (cosent, cosine), of three texts and the "
         "difference of their similarities (margin_mse), or of the vectors of a teacher (distill); automatic chooses "
         "by the columns",
         "data",
         {},
         kCommon});
  visit("similarity", c.similarity, {"Similarity of two vectors, in the loss and in evaluations", "data"});
  visit("temperature", c.temperature,
        {"Divide similarities by this number, for the losses info_nce and cosent", "data", above(0), kCommon});
  visit("learn_temperature", c.learn_temperature,
        {"Train the temperature, which starts from this value and stays between 0.01 and 1", "data"});
  visit("symmetric", c.symmetric,
        {"With info_nce, also find the anchor of each positive, with half of the weight", "data"});
  visit("keep_repeated", c.keep_repeated,
        {"With info_nce, keep the rows of a batch that repeat a text of another row, whose positives are then taken "
         "for wrong; otherwise they are dropped from the batch",
         "data"});
  visit("matryoshka", c.matryoshka,
        {"Numbers of components, such as 256,128,64: also train the first components of vectors to be vectors by "
         "themselves",
         "data", between(1, 1 << 24)});
  visit("score_min", c.score_min,
        {"Lowest score, which loss cosine scales to 0; 0 with score_max 0: the lowest in the training data", "data"});
  visit("score_max", c.score_max,
        {"Highest score, which loss cosine scales to 1; 0 with score_min 0: the highest in the training data", "data"});
  visit("teacher_first", c.teacher_first,
        {"With a teacher, train the vectors of all columns towards those of the first one, such as translations",
         "data"});
  visit("pooling", c.pooling,
        {"How the tokens' hidden states become one vector; same: as the initial run", "model", {}, kCommon});
  visit("normalize", c.normalize,
        {"Whether the run divides each vector by its Euclidean norm; same: as the initial run", "model"});
  visit("dense", c.dense,
        {"Number of outputs of a linear layer that is added after the pooling; 0 adds none", "model",
         between(0, 1 << 24)});
  visit("dense_activation", c.dense_activation, {"Activation of this layer", "model"});
  visit("max_length", c.max_length,
        {"Maximum number of tokens of a text, those around it included; longer texts are truncated; 0: as the initial "
         "run",
         "data", at_least(0), kCommon});
  visit("examples", c.examples, {"Rows of a batch", "data", between(1, 1 << 20), kCommon});
  visit("dev_share", c.dev_share,
        {"Share of the rows, chosen at random and at most 10000, that is used for evaluation if there is no dev file",
         "data", kShare});
}

// Throws Error, naming the field, for a value outside its range, and for values that contradict each other.
void check(const EmbedderConfig& config);

struct EmbedderRecipe : Recipe {
  EmbedderConfig embedder;
  // As in LanguageRecipe (qkv/language.h).
  bool fit = false;
  std::set<std::string> given = {};
};

// Returns the recipe for a run from which training starts: an encoder, a classifier or a language model. It has the
// run's model, of which only dropout may be changed. Without a run, the values that do not depend on it.
EmbedderRecipe embedder_fine_tuning(const std::string& run);
EmbedderRecipe embedder_fine_tuning();

// Returns the recipe of a choice as translation_recipe does. There are no presets: init must be set. If max_steps is
// given and max_epochs is not, max_epochs becomes 0.
EmbedderRecipe embedder_recipe(const RecipeChoice& choice);

// Tables or JSON lines with one row per example; docs/train-embedders.md describes them. The columns of a row are an
// anchor and a positive text, or an anchor, a positive and negatives, with a score at the end for the losses that need
// one. With one column of texts, each text is its own positive, computed again with other dropout.
struct EmbedderFiles {
  std::string train;
  std::string dev = "";  // rows for evaluation; "": some of those of `train`, the same in every run with one dev_share
  std::vector<std::string> columns = {};      // names or numbers; empty: usual names, or all columns
  std::vector<std::string> dev_columns = {};  // of dev; empty: as columns
  std::string init = "";                      // the run that training starts from, which a resumed run no longer needs
  // For loss distill: a run that embeds texts, or a file of NumPy (.npy) with a vector of float32 for each text of train,
  // row by row, or, with teacher_first, for each row; "": none.
  std::string teacher = "";
};

// Trains an embedder and writes it to the run directory `out`, a run of an encoder. Returns false if should_stop ended
// training early. A run is resumed, and an initial run is used, as by train_translator. A step has `examples` rows per
// batch, whose texts are computed at most batch_tokens tokens at once; without dropout, this does not change the
// result. Losses and numbers of tokens are those of rows. Training needs the CPU: device must be cpu or automatic.
// label_smoothing and r_drop must be 0. An adapter (lora_rank) is trained with the linear layers after the pooling and
// the temperature. Rows are read from the files in each epoch; 16 bytes a row are in memory. Throws Error, naming the
// file and the line for an invalid row, of which all are checked at the start.
bool train_embedder(const EmbedderFiles& files, const EmbedderRecipe& recipe, const std::string& out,
                    const TrainingObserver& observer, const RankOptions& ranks = {});

}  // namespace qkv
