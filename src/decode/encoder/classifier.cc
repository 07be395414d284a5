#include "qkv/classifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/arena_pool.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/batches.h"
#include "decode/encoder/pairs.h"
#include "decode/encoder/text_ids.h"
#include "io/runs/run.h"
#include "io/weights/tensor_view.h"
#include "model/inference/placed_model.h"
#include "ops/pooling.h"
#include "ops/rows.h"

namespace qkv {
namespace {

// The settings of one call.
struct ClassifierCall {
  ScoreFunction scores;
  int64_t max_length, batch_tokens, first_number;
};

// Assigns the scores of logits z to z.
void to_scores(ScoreFunction function, std::span<float> z) {
  if (function == ScoreFunction::sigmoid)
    for (float& x : z) x = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x))));
  if (function != ScoreFunction::softmax) return;
  const double most = static_cast<double>(*std::ranges::max_element(z));
  double sum = 0;
  for (const float x : z) sum += std::exp(static_cast<double>(x) - most);
  for (float& x : z) x = static_cast<float>(std::exp(static_cast<double>(x) - most) / sum);
}

// Returns the indices of the `top` highest scores, of equal ones the first; 0 means all.
std::vector<int64_t> best_of(std::span<const float> scores, int64_t top) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[to_size(a)] > scores[to_size(b)]; });
  if (top > 0) order.resize(std::min(order.size(), to_size(top)));
  return order;
}

std::vector<int32_t> ids_of(const ClassifierRun& run, const std::string& text, int64_t number) {
  return inner_ids(run, text, fmt::format("text {}", number));
}

}  // namespace

struct Classifier::State {
  const ClassifierRun run;
  const std::shared_ptr<const InferenceEngine> engine;
  mutable ArenaPool arenas;

  State(const std::string& directory, const Placement& placement)
      : run(load_run<ClassifierRun>(directory)), engine(make_inference(*run.model, placement, directory)) {}

  int64_t labels() const { return std::ssize(run.classification.labels); }
  int64_t longest() const { return run.model->config().max_length; }
  int64_t default_length() const { return run.embedding.max_length > 0 ? run.embedding.max_length : longest(); }

  template <class Options>
  ClassifierCall call_of(const Options& options) const {
    check_ranges(options);
    const ClassifierCall call{options.scores.value_or(run.classification.scores),
                              options.max_length.value_or(default_length()), options.batch_tokens, 1};
    const int64_t least = least_length(run.edges);
    if (call.max_length < least || call.max_length > longest())
      fail("max_length must be between {} and {} (is {})", least, longest(), call.max_length);
    return call;
  }

  // Joins the tokens of a text, or of a pair if `pair` is not null.
  ClassifierTokens joined(std::span<const int32_t> text, const std::vector<int32_t>* pair, int64_t number,
                          int64_t max_length) const {
    ClassifierTokens tokens = join_cut(run.edges, run.classification.separators, text, pair, max_length);
    if (tokens.ids.empty()) fail("text {}: has no tokens", number);
    return tokens;
  }

  ClassifierTokens tokens_of(const ClassifierInput& input, int64_t number, int64_t max_length) const {
    const std::vector<int32_t> text = ids_of(run, input.text, number);
    if (!input.pair) return joined(text, nullptr, number, max_length);
    const std::vector<int32_t> pair = ids_of(run, *input.pair, number);
    return joined(text, &pair, number, max_length);
  }

  // Assigns the logits of one batch to the rows of `logits` that it names.
  void compute(std::span<const ClassifierTokens> all, std::span<const size_t> batch, Arena& arena,
               Matrix<float> logits) const {
    const bool typed = run.model->config().token_types > 1;
    Packed packed;
    for (const size_t i : batch) {
      packed.append(all[i].ids);
      if (typed) packed.types.insert(packed.types.end(), all[i].types.begin(), all[i].types.end());
    }
    const Arena::Scope scope(arena);
    Context context{.arena = arena, .inference = true};
    const Matrix<float> h = engine->hidden(packed, context);
    const Matrix<float> v = arena.matrix<float>(packed.sequences(), h.cols);
    pool_rows<float>(h, packed.offsets, run.classification.pooling, v);
    scatter_rows<float>(run.head->forward(v, context), std::vector<int32_t>(batch.begin(), batch.end()), logits);
  }

  // Returns f(n), the tokens of input n, for each of the inputs.
  template <class F>
  static std::vector<ClassifierTokens> encode_all(size_t inputs, F&& f) {
    std::vector<ClassifierTokens> all(inputs);
    parallel_for_throwing(std::ssize(all), [&](int64_t n) { all[to_size(n)] = f(n); });
    return all;
  }

  // Returns the scores of all labels, [inputs, labels]. Adds to the counts of `result`.
  template <class Result>
  std::vector<float> scores_of(std::span<const ClassifierTokens> all, const ClassifierCall& call,
                               Result& result) const {
    std::vector<int64_t> lengths;
    for (const ClassifierTokens& tokens : all) {
      lengths.push_back(std::ssize(tokens.ids));
      result.cut += tokens.is_cut;
      result.tokens += lengths.back();
    }
    const Batches batches = cut_by_length(lengths, tokens_at_once(call.batch_tokens));
    std::vector<float> scores(all.size() * to_size(labels()));
    const Matrix<float> logits(scores.data(), std::ssize(all), labels());
    const ArenaPool::Lease lease(arenas, 1);
    for (size_t b = 0; b < batches.size(); b++) compute(all, batches[b], lease.front(), logits);
    for (int64_t n = 0; n < logits.rows; n++) {
      const std::span<float> row(logits.row(n), to_size(logits.cols));
      if (!all_finite(row)) fail("text {}: the scores are not finite", call.first_number + n);
      to_scores(call.scores, row);
    }
    return scores;
  }

  // Returns the index of the label that orders texts.
  int64_t label_of(const std::string& label) const {
    const std::vector<std::string>& all = run.classification.labels;
    if (label.empty() && all.size() == 1) return 0;
    if (label.empty()) fail("label must be one of {}: the model has several", fmt::join(all, ", "));
    const auto found = std::ranges::find(all, label);
    if (found == all.end()) fail("label must be one of {} (is {})", fmt::join(all, ", "), excerpt(label));
    return found - all.begin();
  }
};

Classifier::Classifier(const std::string& run_directory, const Placement& placement)
    : state_(new State(run_directory, placement)) {
  const int64_t length = state_->run.embedding.max_length, longest = state_->longest();
  if (length < 0 || length > longest)
    fail("{}: max_length must be between 0 and {}, the model's (is {})", RunDirectory(run_directory).embedding(),
         longest, length);
}
Classifier::~Classifier() = default;
Classifier::Classifier(Classifier&&) noexcept = default;
Classifier& Classifier::operator=(Classifier&&) noexcept = default;

const std::vector<std::string>& Classifier::labels() const { return state_->run.classification.labels; }
ScoreFunction Classifier::scores() const { return state_->run.classification.scores; }
int64_t Classifier::max_length() const { return state_->default_length(); }

Classifications Classifier::classify(const std::vector<ClassifierInput>& inputs, const ClassifyOptions& options) const {
  const ClassifierCall call = state_->call_of(options);
  return classify_tokens(
      State::encode_all(
          inputs.size(),
          [&](int64_t n) { return state_->tokens_of(inputs[to_size(n)], options.first_number + n, call.max_length); }),
      options);
}

std::vector<int32_t> Classifier::encode(const std::string& text, int64_t number) const {
  return ids_of(state_->run, text, number);
}

ClassifierTokens Classifier::join(const std::vector<int32_t>& text, const std::vector<int32_t>* pair,
                                  const ClassifyOptions& options) const {
  return state_->joined(text, pair, options.first_number, state_->call_of(options).max_length);
}

Classifications Classifier::classify_tokens(const std::vector<ClassifierTokens>& inputs,
                                            const ClassifyOptions& options) const {
  ClassifierCall call = state_->call_of(options);
  call.first_number = options.first_number;
  for (size_t n = 0; n < inputs.size(); n++)
    if (inputs[n].ids.empty()) fail("text {}: has no tokens", options.first_number + static_cast<int64_t>(n));
  Classifications result;
  const std::vector<float> scores = state_->scores_of(inputs, call, result);
  const size_t labels = to_size(state_->labels());
  for (size_t n = 0; n < inputs.size(); n++) {
    const std::span<const float> row = std::span(scores).subspan(n * labels, labels);
    std::vector<LabelScore>& best = result.texts.emplace_back();
    for (const int64_t label : best_of(row, options.top)) best.push_back({label, row[to_size(label)]});
  }
  return result;
}

Ranking Classifier::rerank(const std::string& query, const std::vector<std::string>& texts,
                           const RerankOptions& options) const {
  const ClassifierCall call = state_->call_of(options);
  const int64_t label = state_->label_of(options.label), labels = state_->labels();
  const std::vector<int32_t> asked = ids_of(state_->run, query, 1);
  const std::vector<ClassifierTokens> pairs = State::encode_all(texts.size(), [&](int64_t n) {
    const std::vector<int32_t> text = ids_of(state_->run, texts[to_size(n)], 1 + n);
    return state_->joined(asked, &text, 1 + n, call.max_length);
  });
  Ranking result;
  const std::vector<float> all = state_->scores_of(pairs, call, result);
  std::vector<float> scores;
  for (int64_t n = 0; n < std::ssize(texts); n++) scores.push_back(all[to_size(n * labels + label)]);
  for (const int64_t n : best_of(scores, options.top)) result.texts.push_back({n, scores[to_size(n)]});
  return result;
}

}  // namespace qkv
