// The forward pass of attention.
#include "program/explain/attention_steps.h"

#include <cmath>
#include <limits>

#include "core/fail.h"
#include "core/to_size.h"
#include "program/explain/head_op.h"

namespace qkv {
namespace {

// Exponentials are shown relative to the largest of their rows, if the largest score of a row is beyond ± this.
constexpr double kLargestShown = 100;

std::vector<std::string> member(const PlacedAttention& place, const std::vector<std::string>& names) {
  std::vector<std::string> path = place.path;
  path.insert(path.end(), names.begin(), names.end());
  return path;
}

// The weight and the bias of a projection; no bias: null.
struct ProjectionSteps {
  const ExplainedStep *W = nullptr, *b = nullptr;
};

ProjectionSteps add_weights(StepRecorder& to, const PlacedAttention& place, size_t h, const std::string& name,
                            const NumberTable& W, const NumberTable& b) {
  const auto add = [&](const std::string& symbol, const NumberTable& table) {
    return &to.given(symbol, symbol, {}, table, member(place, {"heads", std::to_string(h), symbol}));
  };
  ProjectionSteps steps;
  steps.W = add("W_" + name, W);
  if (!b.empty()) steps.b = add("b_" + name, b);
  return steps;
}

// Adds Q, K and V of one head: projections, or what is given.
HeadSteps add_queries(StepRecorder& to, const PlacedAttention& place, size_t h) {
  const ExplainedHead& head = place.input->heads[h];
  HeadSteps steps;
  if (head.has_weights()) {
    const ProjectionSteps Q = add_weights(to, place, h, "Q", head.W_Q, head.b_Q);
    const ProjectionSteps K = add_weights(to, place, h, "K", head.W_K, head.b_K);
    const ProjectionSteps V = add_weights(to, place, h, "V", head.W_V, head.b_V);
    steps.W_Q = Q.W, steps.W_K = K.W, steps.W_V = V.W;
    steps.Q = &to.sum("Q", "Q", linear_terms(*place.x, *Q.W, Q.b));
    steps.K = &to.sum("K", "K", linear_terms(*place.z, *K.W, K.b));
    steps.V = &to.sum("V", "V", linear_terms(*place.z, *V.W, V.b));
    return steps;
  }
  const auto path = [&](const char* name) { return member(place, {"heads", std::to_string(h), name}); };
  steps.Q = &to.given("Q", "Q", place.tokens, head.Q, path("Q"));
  steps.K = &to.given("K", "K", place.keys, head.K, path("K"));
  steps.V = &to.given("V", "V", place.keys, head.V, path("V"));
  return steps;
}

// The sum, which is −∞ only if the mask hides the key: NaN, which the recorder refuses, if it overflows.
double masked_score(double score, double mask) {
  const double sum = score + mask;
  return std::isinf(sum) && std::isfinite(mask) ? std::numeric_limits<double>::quiet_NaN() : sum;
}

// Adds the scores, which softmax gets, and returns the last step.
const ExplainedStep& add_scores(StepRecorder& to, const PlacedAttention& place, const HeadSteps& head) {
  const ExplainedAttention& in = *place.input;
  const ExplainedStep& scores = to.sum("scores", "scores", {{*head.Q, turned(*head.K)}});
  const std::string root = fmt::format("Q Kᵀ / √d_k, with √d_k = √{} = {:.3f}", in.key_width(), 1 / in.factor());
  ExplainedStep scaled{"scaled",     "S",        in.scale == 0 ? root : fmt::format("{} Q Kᵀ", in.scale),
                       place.tokens, place.keys, scores.values};
  for (double& s : scaled.values.values) s *= in.factor();
  scaled.origin = {StepKind::scaled, {scores.id}};
  scaled.origin.number = in.factor();
  scaled.origin.index = in.scale == 0 ? in.key_width() : 0;
  const ExplainedStep& S = to.add(std::move(scaled));
  if (!in.causal && !place.mask) return S;
  const char* formula = !in.causal   ? "S + M"
                        : place.mask ? "S + M, and −∞ for later tokens"
                                     : "S + M, where the mask M is −∞ for later tokens and otherwise 0";
  ExplainedStep masked{"masked", "S′", formula, place.tokens, place.keys, S.values};
  for (int64_t i = 0; i < S.values.rows; i++)
    for (int64_t j = 0; j < S.values.columns; j++) {
      masked.values.at(i, j) = masked_score(S.values.at(i, j), place.mask ? place.mask->values.at(i, j) : 0);
      if (in.causal && j > i) masked.values.at(i, j) = -std::numeric_limits<double>::infinity();
    }
  masked.origin = {StepKind::masked, {S.id}};
  if (place.mask) masked.origin.of.push_back(place.mask->id);
  masked.origin.flag = in.causal;
  return to.add(std::move(masked));
}

// Adds the weights and the output, computed by the ops.
void attend(StepRecorder& to, const PlacedAttention& place, const ExplainedStep& S, HeadSteps& head) {
  const ExponentialSteps exponentials = explain_exponentials(to, S);
  NumberTable O = zero_table(head.Q->values.rows, head.V->values.columns);
  NumberTable A = zero_table(head.Q->values.rows, head.K->values.rows);
  head.lse.resize(to_size(O.rows));
  const AttentionInput<double> input = attention_op_input(*place.input, head);
  attention<double>(input, {O.values.data(), O.columns, 0}, {head.lse.data(), 1, 0}, {});
  attention_weights<double>(input, {head.lse.data(), 1, 0}, {0, 0, 0, O.rows}, A.values.data());
  ExplainedStep weights{"weights",    "A",        fmt::format("softmax({}): E divided by its row sums", S.name),
                        place.tokens, place.keys, A};
  weights.origin = {StepKind::shares, {exponentials.E->id, exponentials.sums->id}};
  head.A = &to.add(std::move(weights));
  head.O = &to.sum("output", "O", {{*head.A, *head.V}}, std::move(O));
}

const ExplainedStep& add_side_by_side(StepRecorder& to, const AttentionSteps& steps) {
  ExplainedStep all{"concat", "O", "outputs of the heads, side by side", steps.place.tokens, {}, {}};
  all.origin.kind = StepKind::side_by_side;
  std::vector<NumberTable> outputs;
  for (const HeadSteps& head : steps.heads) {
    outputs.push_back(head.O->values);
    all.origin.of.push_back(head.O->id);
  }
  all.values = side_by_side(outputs);
  return to.add(std::move(all));
}

}  // namespace

ExponentialSteps explain_exponentials(StepRecorder& to, const ExplainedStep& S) {
  const NumberTable shifts = exponential_shifts(S.values, kLargestShown);
  ExplainedStep E{
      "exp",           "E",     "exp(" + S.name + (shifts.empty() ? ")" : " − the largest of the row)"), S.row_labels,
      S.column_labels, S.values};
  for (int64_t i = 0; i < E.values.rows; i++)
    for (int64_t j = 0; j < E.values.columns; j++)
      E.values.at(i, j) = std::exp(E.values.at(i, j) - (shifts.empty() ? 0 : shifts.at(i, 0)));
  E.origin = {StepKind::exponential, {S.id}};
  E.origin.number = kLargestShown;
  const ExplainedStep& added = to.add(std::move(E));
  ExplainedStep sums{"row_sums", "row sums", "Σⱼ Eᵢⱼ", S.row_labels, {}, row_sums_of(added.values)};
  sums.origin = {StepKind::row_sums, {added.id}};
  return {&added, &to.add(std::move(sums))};
}

AttentionSteps explain_attention_forward(const PlacedAttention& place, StepRecorder& to) {
  const ExplainedAttention& in = *place.input;
  AttentionSteps steps{place, {}};
  for (size_t h = 0; h < in.heads.size(); h++) {
    to.begin(place.title + which_head(in, h));
    to.set_prefix(fmt::format("{}head{}.", place.prefix, h + 1));
    HeadSteps head = add_queries(to, place, h);
    attend(to, place, add_scores(to, place, head), head);
    steps.heads.push_back(std::move(head));
    to.set_prefix(place.prefix);
  }
  to.begin(place.number.empty() ? "Output of all heads" : place.title + ": output of all heads");
  steps.output = steps.O = in.heads.size() > 1 ? &add_side_by_side(to, steps) : steps.heads.front().O;
  if (!in.W_O.empty()) {
    steps.W_O = &to.given("W_O", "W_O", {}, in.W_O, member(place, {"W_O"}));
    const ExplainedStep* b = in.b_O.empty() ? nullptr : &to.given("b_O", "b_O", {}, in.b_O, member(place, {"b_O"}));
    steps.output = &to.sum("output", "Y" + place.number, linear_terms(*steps.O, *steps.W_O, b));
  }
  to.set_prefix("");
  return steps;
}

}  // namespace qkv
