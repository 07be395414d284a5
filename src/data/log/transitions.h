// Counted transitions between items, and the scores that follow from them: how often an item came soon after another
// one, in the log. docs/math.md states the formulas.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "core/to_size.h"
#include "data/log/interactions.h"
#include "qkv/field.h"

namespace qkv {

// How transitions are counted and what they add to the scores of a model; transitions.json of a run. An event of item y
// that comes d <= distance events after one of item x of the same user adds d^−power to the count C[x][y]. A history
// with the items x_1, x_2, … from the newest adds
//   weight Σ_j w_j log(1 + scale C[x_j][y]),  w_j = decay^(j−1) / Σ_i decay^(i−1),  j <= events
// to the score of y.
struct TransitionConfig {
  double weight = 0;
  double decay = 0.6;
  double scale = 1;
  int64_t events = 10;
  int64_t distance = 10;
  double power = 0.5;
  int64_t kept = 4096;

  bool operator==(const TransitionConfig&) const = default;
};

template <class Visitor>
void visit_fields(TransitionConfig& c, Visitor&& visit) {
  visit("weight", c.weight, {"Weight of the transitions; 0 is off", "transitions", between(0, 1e6), kInternal});
  visit("decay", c.decay,
        {"Weight of an event relative to the next newer one", "transitions", between(0, 1).without_min(), kInternal});
  visit("scale", c.scale,
        {"Factor of the counts inside the logarithm", "transitions", between(0, 1e9).without_min(), kInternal});
  visit("events", c.events, {"Newest events of a history that count", "transitions", between(1, 1000), kInternal});
  visit("distance", c.distance, {"Largest distance between two events", "transitions", between(1, 255), kInternal});
  visit("power", c.power, {"A pair at distance d counts d^-power", "transitions", between(0, 10), kInternal});
  visit("kept", c.kept,
        {"Successors that are kept for each item, those with the largest counts", "transitions", between(1, 1 << 20),
         kInternal});
}

// Returns how many successors of each item are kept, so that those of all items take at most about 800 MiB.
int64_t kept_successors(int64_t items);

class Transitions {
 public:
  // The score of an item.
  struct Scored {
    int32_t item;
    float score;
  };

  // Counts the first counted(user) events of each user.
  Transitions(const Interactions& data, FunctionRef<int64_t(int64_t user)> counted, const TransitionConfig& config);

  const TransitionConfig& config() const { return config_; }
  // Change values that the counts do not depend on.
  void set_weight(double weight) { config_.weight = weight; }
  void set_shape(double decay, double scale);

  // Returns the scores of a history, in ascending order of the items; items without a score have none.
  std::vector<Scored> scores(std::span<const int32_t> history) const;
  // Adds them to the scores of all items.
  void add(std::span<const int32_t> history, std::span<float> to) const;

  int64_t items() const { return std::ssize(offsets_) - 1; }
  int64_t pairs() const { return std::ssize(successors_); }  // of items, with a count
  size_t bytes() const;

 private:
  // The weight of each of the newest events, newest first.
  std::vector<float> weights(size_t events) const;
  void set_values();

  TransitionConfig config_;
  std::vector<int64_t> offsets_ = {0};  // the successors of item x: offsets_[x] … offsets_[x + 1] − 1
  std::vector<int32_t> successors_;     // ascending
  std::vector<float> counts_, values_;  // C[x][y] and log(1 + scale C[x][y])
};

}  // namespace qkv
