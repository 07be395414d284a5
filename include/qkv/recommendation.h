// Training a sequential recommender from a log of who did what into a run directory: a decoder-only Transformer over
// items that predicts the next one. Kang and McAuley, "Self-Attentive Sequential Recommendation" (2018).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/training.h"

namespace qkv {

// With s_v = h · E[v] the score of item v after a history, v the next item, and k negatives that are drawn for it:
//   softmax          −log softmax(s)_v over the whole catalogue
//   sampled_softmax  the same over v and the negatives, each negative's score less the logarithm of how often it is
//                    expected among the k
//   bce              −log σ(s_v) − Σ log(1 − σ(s_negative)): SASRec's, with one negative
//   gbce             −β log σ(s_v) − Σ log(1 − σ(s_negative)), β = α (t (1 − 1/α) + 1/α) with α = k / (V − 1):
//                    Petrov and Macdonald, "gSASRec" (2023); t is the calibration
enum class ItemLoss { softmax, sampled_softmax, bce, gbce };
constexpr std::array<std::string_view, 4> names_of(ItemLoss) { return {"softmax", "sampled_softmax", "bce", "gbce"}; }

// How negatives are drawn: from all items alike, or as often as they stand in the training data.
enum class NegativeSampling { uniform, popularity };
constexpr std::array<std::string_view, 2> names_of(NegativeSampling) { return {"uniform", "popularity"}; }

// Which events are kept aside: of each user the last for the test and the one before for the validation, or all from
// two moments on.
enum class SplitRule { leave_one_out, temporal };
constexpr std::array<std::string_view, 2> names_of(SplitRule) { return {"leave_one_out", "temporal"}; }

// recommendation.json of a run.
struct RecommendationConfig {
  int64_t min_events = 3;  // users with fewer events are left out; three make a training, a validation and a test item
  int64_t core = 0;        // users and items with fewer events than this are left out, again and again; 0: none
  SplitRule split = SplitRule::leave_one_out;
  double test_share = 0.1;  // of all events, in the test of a temporal split; its validation has as many
  ItemLoss loss = ItemLoss::softmax;
  int64_t negatives = 1;  // drawn for each position, none of them an item of the user
  NegativeSampling sampling = NegativeSampling::uniform;
  double calibration = 0.75;       // t of gBCE
  bool positions_from_end = true;  // the newest item has the last position; else the oldest has the first
  bool time_gaps = false;          // the model reads the time between events; the log must have times

  bool operator==(const RecommendationConfig&) const = default;
};

// Calls visit(name, member, field) for every field: the one list behind recommendation.json and the command line.
template <class Visitor>
void visit_fields(RecommendationConfig& c, Visitor&& visit) {
  visit("min_events", c.min_events, "leave out users with fewer events");
  visit("core", c.core, "leave out users and items with fewer events, again and again; 0 is off");
  visit("split", c.split, "which events are kept aside for validation and test");
  visit("test_share", c.test_share, "of all events, in the test of a temporal split");
  visit("loss", c.loss, "what is made small");
  visit("negatives", c.negatives, "items drawn against each next item");
  visit("sampling", c.sampling, "how they are drawn");
  visit("calibration", c.calibration, "t of gbce: 0 is bce, 1 has calibrated probabilities");
  visit("positions_from_end", c.positions_from_end, "the newest item has the last position");
  visit("time_gaps", c.time_gaps, "the time between events is read");
}

// Throws Error, naming the value, for one that makes no sense.
void check(const RecommendationConfig& config);

struct RecommendationRecipe : Recipe {
  RecommendationConfig recommendation;
};

// "sasrec" (the published block and loss: d 50, 1 head, 2 layers, BCE; 300 epochs) or "films" (pre-norm blocks, d 64,
// softmax over all items; 150 epochs), both with a cosine. Throws Error for another name.
RecommendationRecipe recommendation_preset(const std::string& name);

struct RecommendationFiles {
  std::vector<std::string> data;          // logs
  std::vector<std::string> columns = {};  // how they are read: InteractionOptions
  std::string warm_start = {};            // a run whose weights are the start; "": none
  std::string features = {};              // a table of what is known of the items: src/data/item_features.h; "": none
  std::vector<std::string> feature_columns = {};  // of that table
};

// Trains into the directory `out` on the logs, but for what is kept aside for validation, which chooses the best
// weights, and test; false if should_stop ended it early. A run that is there already is resumed where it was saved
// last, as by train_translation. Where eval_every is 0, the model is evaluated once an epoch. With a warm start the
// items of that run keep their ids, whether they are in the logs or not, and new ones follow; the model must have the
// shape of that run's but for the number of items. Throws Error for logs, options or files that will not do.
bool train_recommendation(const RecommendationFiles& files, const RecommendationRecipe& recipe, const std::string& out,
                          const TrainingObserver& observer);

}  // namespace qkv
