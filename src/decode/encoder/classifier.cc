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
#include "decode/encoder/pairs.h"
#include "decode/encoder/pooling.h"
#include "decode/search/batched.h"
#include "io/runs/run.h"
#include "io/weights/tensor_view.h"
#include "text/mark_hint.h"
#include "text/unicode.h"

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

std::vector<int32_t> ids_of(const ClassifierRun& run, const std::string& text, const std::string& where) {
  if (const size_t bad = find_invalid_utf8(text); bad != std::string::npos)
    fail("{}: byte {} is not valid UTF-8{}", where, bad + 1, mark_hint(text));
  return run.codec.encode(prepare_text(run.embedding, text), where);
}

}  // namespace

struct Classifier::State {
  const ClassifierRun run;
  mutable ArenaPool arenas;

  int64_t labels() const { return std::ssize(run.classification.labels); }
  int64_t longest() const { return run.model->config().max_length; }
  int64_t default_length() const { return run.embedding.max_length > 0 ? run.embedding.max_length : longest(); }

  template <class Options>
  ClassifierCall call_of(const Options& options) const {
    check_ranges(options);
    const ClassifierCall call{options.scores.value_or(run.classification.scores),
                              options.max_length.value_or(default_length()), options.batch_tokens, 1};
    const int64_t least = std::ssize(run.edges.before) + 3 * std::ssize(run.edges.after) + 1;
    if (call.max_length < least || call.max_length > longest())
      fail("max_length must be between {} and {} (is {})", least, longest(), call.max_length);
    return call;
  }

  TypedIds tokens_of(const ClassifierInput& input, const std::string& where, int64_t max_length, bool& cut) const {
    const int64_t separators = run.classification.separators;
    const int64_t ends = input.pair ? separators + 1 : 1;
    const size_t room = to_size(max_length - std::ssize(run.edges.before) - ends * std::ssize(run.edges.after));
    std::vector<int32_t> a = ids_of(run, input.text, where), b;
    if (input.pair) b = ids_of(run, *input.pair, where);
    const auto [kept_a, kept_b] = longest_first(a.size(), b.size(), room);
    cut = kept_a + kept_b < a.size() + b.size();
    a.resize(kept_a), b.resize(kept_b);
    TypedIds tokens = join(run.edges, separators, a, input.pair ? &b : nullptr);
    if (tokens.ids.empty()) fail("{}: has no tokens", where);
    return tokens;
  }

  // Assigns the logits of one batch to the rows of `logits` that it names.
  void compute(std::span<const TypedIds> all, std::span<const size_t> batch, Arena& arena, Matrix<float> logits) const {
    const bool typed = run.model->config().token_types > 1;
    Packed packed;
    for (const size_t i : batch) {
      packed.append(all[i].ids);
      if (typed) packed.types.insert(packed.types.end(), all[i].types.begin(), all[i].types.end());
    }
    const Arena::Scope scope(arena);
    Context context{.arena = arena, .inference = true};
    const Matrix<float> h = run.model->hidden(packed, context);
    const Matrix<float> v = arena.matrix<float>(packed.sequences(), h.cols);
    for (int64_t s = 0; s < v.rows; s++)
      pool(h.row_range(packed.offsets[to_size(s)], packed.offsets[to_size(s) + 1]), run.classification.pooling,
           {v.row(s), to_size(v.cols)});
    const Matrix<float> z = run.head->forward(v, context);
    for (int64_t s = 0; s < z.rows; s++)
      std::copy_n(z.row(s), z.cols, logits.row(static_cast<int64_t>(batch[to_size(s)])));
  }

  // Returns the scores of all labels, [inputs, labels]. Adds to the counts of `result`.
  template <class Result>
  std::vector<float> scores_of(const std::vector<ClassifierInput>& inputs, const ClassifierCall& call,
                               Result& result) const {
    std::vector<TypedIds> all(inputs.size());
    std::vector<uint8_t> truncated(inputs.size());
    parallel_for_throwing(std::ssize(inputs), [&](int64_t n) {
      bool was_cut = false;
      all[to_size(n)] =
          tokens_of(inputs[to_size(n)], fmt::format("text {}", call.first_number + n), call.max_length, was_cut);
      truncated[to_size(n)] = was_cut;
    });
    result.cut += std::ranges::count(truncated, 1);
    std::vector<int64_t> lengths;
    for (const TypedIds& tokens : all) lengths.push_back(std::ssize(tokens.ids));
    result.tokens += std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    const Batches batches = cut_by_length(lengths, tokens_at_once(call.batch_tokens));
    std::vector<float> scores(inputs.size() * to_size(labels()));
    const Matrix<float> logits(scores.data(), std::ssize(inputs), labels());
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

Classifier::Classifier(const std::string& run_directory)
    : state_(new State{load_run<ClassifierRun>(run_directory), {}}) {
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
  ClassifierCall call = state_->call_of(options);
  call.first_number = options.first_number;
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
  std::vector<ClassifierInput> pairs;
  for (const std::string& text : texts) pairs.push_back({query, text});
  Ranking result;
  const std::vector<float> all = state_->scores_of(pairs, call, result);
  std::vector<float> scores;
  for (int64_t n = 0; n < std::ssize(texts); n++) scores.push_back(all[to_size(n * labels + label)]);
  for (const int64_t n : best_of(scores, options.top)) result.texts.push_back({n, scores[to_size(n)]});
  return result;
}

}  // namespace qkv
