// The list of experiments.
#include <algorithm>

#include "core/fail.h"
#include "program/experiments/experiment.h"

namespace qkv {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      {"softmax", "Softmax against argmax: weights, entropy and gradient by temperature",
       "Turn 8 random scores of one query into weights. Compared: softmax(s / θ) by temperature θ, and the argmax.",
       softmax_experiment},
      {"heads", "One attention head against several of the same total width",
       "Each token has one of 8 names and one of 8 values. From each token of the second half of a text, one attention "
       "layer predicts four values: that of the previous token, of the token two before, of the earlier token of the "
       "same name, and of the first token. Compared: 1, 2, 4 and 8 heads with the same number of parameters.",
       heads_experiment},
      {"norm", "Training without and with layer normalization, by place of the norm and learning rate",
       "Predict the next symbol of generated text with 6 layers, trained without warm-up. Compared: no norm, "
       "one before the output only, and five places of the norm, by learning rate.",
       norm_experiment},
      {"depth", "Training with and without residual connections, by depth",
       "Predict the next symbol of generated text with 1 to 16 layers. Compared: x + f(norm(x)), with residual "
       "connections, and f(norm(x)), without, around each sublayer f.",
       depth_experiment},
      {"gradients", "Gradient of each layer before training, by place of the norm",
       "Predict the next symbol of generated text with random weights, and compute the gradient of the loss. Compared: "
       "the size of the gradient in each layer, by the place of the norm, and without norms or residual connections.",
       gradients_experiment},
      {"order", "Permutation equivariance, and two sentences of the same words",
       "Give a random model of two layers the same tokens in another order. Compared: its output, with and without "
       "positions, with a causal mask, and of cross-attention.",
       order_experiment},
      {"lengths", "Kinds of positions on sequences longer than those of training",
       "Predict the next symbol of generated text of 128 tokens after training on 32 tokens. Compared: the loss beyond "
       "token 32, by kind of positions.",
       lengths_experiment},
      {"distance", "Recall over long distances: Transformer against a recurrent network",
       "Name the first token of a sequence at its end. Compared: attention and a gated recurrent network (GRU), by the "
       "gradient that reaches the first token before training, and by right answers after it.",
       distance_experiment},
      {"baselines", "A Transformer language model against n-gram models, by amount of text",
       "Predict the next symbol of text that is not in training. Compared: n-gram models and a Transformer, by the "
       "amount of training text.",
       baselines_experiment, true}};
  return all;
}

ExperimentResult run_experiment(std::string_view name, const ExperimentOptions& options) {
  const auto found = std::ranges::find(experiments(), name, &Experiment::name);
  if (found == experiments().end()) {
    std::string names;
    for (const Experiment& experiment : experiments())
      names += (names.empty() ? "" : ", ") + std::string(experiment.name);
    fail("experiment: must be one of {} (is {})", names, name);
  }
  if (!(options.effort > 0 && options.effort <= 1))
    fail("experiment: effort must be above 0 and at most 1 (is {})", options.effort);
  if (!options.data.empty() && !found->accepts_data)
    fail("experiment {}: reads no data (found {})", name, options.data);
  ExperimentResult result = found->run(options);
  result.task = found->task;
  return result;
}

double ExperimentTable::at(std::string_view row, std::string_view column) const {
  const auto r = std::ranges::find(rows, row, &ExperimentRow::name);
  const auto c = std::ranges::find(columns, column);
  if (r == rows.end() || c == columns.end()) fail("table {}: has no {}, {}", id, row, column);
  return r->values.at(static_cast<size_t>(c - columns.begin()));
}

const ExperimentTable& ExperimentResult::table(std::string_view id) const {
  const auto found = std::ranges::find(tables, id, &ExperimentTable::id);
  if (found == tables.end()) fail("experiment: has no table {}", id);
  return *found;
}

}  // namespace qkv
