// Training a sequential recommender from a log of users and items: a decoder-only Transformer over items that predicts
// the next one. Kang and McAuley, "Self-Attentive Sequential Recommendation" (2018).
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/interactions.h"
#include "qkv/training.h"

namespace [[gnu::visibility("default")]] qkv {

// The loss of one position, where s_v = h · E[v] is the score of item v, v is the next item, and k negatives are drawn:
//   softmax          −log softmax(s)_v over all items
//   sampled_softmax  the same over v and the negatives, where the score of a negative is reduced by the logarithm of
//   its
//                    expected number of occurrences among the k
//   bce              −log σ(s_v) − Σ log(1 − σ(s_negative)); SASRec uses one negative
//   gbce             −β log σ(s_v) − Σ log(1 − σ(s_negative)) with β = α (t (1 − 1/α) + 1/α), α = k / (V − 1) and the
//                    calibration t: Petrov and Macdonald, "gSASRec" (2023)
enum class ItemLoss { softmax, sampled_softmax, bce, gbce };
constexpr std::array<std::string_view, 4> names_of(ItemLoss) { return {"softmax", "sampled_softmax", "bce", "gbce"}; }

// The distribution of negatives: uniform over all items, or by their frequency in the training data.
enum class NegativeSampling { uniform, popularity };
constexpr std::array<std::string_view, 2> names_of(NegativeSampling) { return {"uniform", "popularity"}; }

// Which positions share their negatives: none, so that a negative is never an item of the user; or all of a batch,
// whose scores are then one matrix product. A shared negative that is the next item of a position does not count there.
enum class NegativeScope { token, batch };
constexpr std::array<std::string_view, 2> names_of(NegativeScope) { return {"token", "batch"}; }

// How a log is read and learned from, recommendation.json of a run.
struct RecommendationConfig {
  int64_t min_events = 3;
  int64_t core = 0;
  SplitRule split = SplitRule::leave_one_out;
  double test_share = 0.1;
  bool repeats = false;
  int64_t holdout = 1;
  ItemLoss loss = ItemLoss::softmax;
  int64_t negatives = 1;
  NegativeSampling sampling = NegativeSampling::uniform;
  NegativeScope negative_scope = NegativeScope::token;
  double calibration = 0.75;
  bool sparse_updates = false;
  bool positions_from_end = true;
  bool time_gaps = false;
  bool transitions = false;

  bool operator==(const RecommendationConfig&) const = default;
};

// Calls visit(name, member, field) for every field. This list defines recommendation.json and the command line.
template <class Visitor>
void visit_fields(RecommendationConfig& c, Visitor&& visit) {
  constexpr Range kShare = between(0, 0.5).without_min().without_max();
  visit("min_events", c.min_events,
        {"Drop users with fewer events; leave_one_out needs 3: training, validation and test", "data", at_least(2),
         kCommon});
  visit("core", c.core,
        {"Drop users and items with fewer events, repeatedly until none is left (k-core); 0 is off", "data",
         at_least(0)});
  visit("split", c.split,
        {"Events for validation and test: the last two of each user, all after two points in time, or the last one of "
         "some users",
         "data"});
  visit("test_share", c.test_share,
        {"Share of all events in the test of a temporal split; its validation is as large", "data", kShare});
  visit("repeats", c.repeats,
        {"Predict items that the user already had: as negatives, as candidates in evaluation and, by default, in "
         "recommendations",
         "data",
         {},
         kCommon});
  visit("holdout", c.holdout,
        {"Events of each user in the test of leave_one_out, and as many in its validation; users with fewer than twice "
         "as many and one more are only trained on",
         "data", between(1, 1000)});
  visit("loss", c.loss, {"Loss: softmax over all items, or one over drawn negatives", "optimizer", {}, kCommon});
  visit("negatives", c.negatives,
        {"Negatives drawn for each position, or for each batch (negative_scope)", "optimizer", between(1, 65536)});
  visit("sampling", c.sampling, {"Distribution of negatives", "optimizer"});
  visit("negative_scope", c.negative_scope,
        {"Draw negatives for each token, never items of its user, or once for all tokens of a batch: 16 times as many "
         "take about the same time",
         "optimizer"});
  visit("calibration", c.calibration,
        {"Calibration t of gbce: 0 equals bce, 1 gives calibrated probabilities", "optimizer", between(0, 1)});
  visit("sparse_updates", c.sparse_updates,
        {"Compute gradients and steps of Adam only for the items that occur in a batch; others catch up later. Almost "
         "the same result at a cost that does not grow with the number of items",
         "optimizer"});
  visit("positions_from_end", c.positions_from_end,
        {"Give the newest item the last position, instead of the oldest the first", "model"});
  visit("time_gaps", c.time_gaps, {"Feed the time between events to the model; the log must have times", "model"});
  visit("transitions", c.transitions,
        {"Add counted transitions between items to the scores; the validation decides their weight", "model"});
}

// Throws Error, naming the field, for a value outside its range.
void check(const RecommendationConfig& config);

struct RecommendationRecipe : Recipe {
  RecommendationConfig recommendation;
  // If true, training chooses values that fit the log, except those that differ from the preset "auto" or that `given`
  // names. set_recipe_option and merge_recipe_json add the names that they set.
  bool fit = false;
  std::set<std::string> given = {};
};

// Returns a preset; throws Error for an unknown name.
//   "auto"    "films", where the shape of the log chooses context, batches, loss, dropout, learning rate and length of
//             training (docs/recommend.md); the usual choice
//   "films"   pre-norm layers, d_model 64, softmax over all items; a cosine schedule of 150 epochs
//   "sasrec"  the published architecture and loss: d_model 50, 1 head, 2 layers, bce; a cosine of 300 epochs
RecommendationRecipe recommendation_preset(const std::string& name);
inline constexpr const char* kRecommendationPreset = "auto";  // the usual one

// Returns a preset with the values of the choice. Throws Error for invalid values.
RecommendationRecipe recommendation_recipe(const RecipeChoice& choice);

struct RecommendationFiles {
  std::vector<std::string> data;          // logs
  std::vector<std::string> columns = {};  // their columns: InteractionOptions (qkv/interactions.h)
  std::string init = {};                  // a run whose weights training starts from; "": none
  std::string features = {};              // a table of categories and words of items (docs/recommend.md); "": none
  std::vector<std::string> feature_columns = {};  // columns of that table
  // How logs are read: as in InteractionOptions.
  std::string separator = {}, time_format = {};
  bool skip_bad_lines = false;
};

// Trains a recommender and writes it to the run directory `out`. Returns false if should_stop ended training early.
// A run is resumed as by train_translator. Validation events select the best weights; they and test events are not
// learned from. If eval_every is 0, the model is evaluated once per epoch. Popularity and a Markov chain are scored on
// the validation before the first step, and a model that ends below one of them is reported with what to try. The items
// of an initial run keep their ids, even those that are not in the logs, and new items follow; except for the number of
// items, the model must have the same shape. Throws Error for invalid logs, options or files.
bool train_recommender(const RecommendationFiles& files, const RecommendationRecipe& recipe, const std::string& out,
                       const TrainingObserver& observer, const RankOptions& ranks = {});

}  // namespace qkv
