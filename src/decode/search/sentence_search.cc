#include "decode/search/sentence_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/to_size.h"
#include "decode/search/sampler.h"
#include "decode/search/search.h"

namespace qkv {
namespace {

bool is_number(const NextToken& next) { return !std::isnan(next.values.front()); }

}  // namespace

SentenceSearch::SentenceSearch(const Ensemble& models, uint64_t key, const SearchInput& input,
                               const SearchOptions& options)
    : Sequence(key, {live_hypotheses(input, options), rows_needed(models, input, options)}),
      input_(input),
      options_(options),
      max_tokens_(max_tokens(models, input, options)),
      needs_all_(!best_are_enough(models, input, options)),
      excluded_(excluded_tokens(options, false)),
      excluded_at_first_(excluded_tokens(options, true)),
      live_(1) {
  if (options.sampling)
    for (int64_t n = 0; n < options.n_best; n++) random_.push_back(sampling_random(options.seed, input.source, n));
}

const Excluded* SentenceSearch::excluded() const {
  if (needs_all_) return nullptr;
  return t_ < options_.min_length ? &excluded_at_first_ : &excluded_;
}

void SentenceSearch::read(KeyValueCache& cache) {
  const std::span<const int32_t> start = input_.start;
  for (int64_t i = 0; t_ == 0 && i < tokens_forced(start); i++) cache.add(rows_, 0, start[to_size(i)]);
  predicting_.begin = cache.step_tokens();
  for (const Live& live : live_) {
    const int32_t first = start.empty() ? options_.start : start.back();
    cache.add(rows_, live.slot, live.last < 0 ? first : nodes_[to_size(live.last)].token);
  }
  predicting_.end = cache.step_tokens();
}

void SentenceSearch::extend(const BestNext& next, int64_t first_row, KeyValueCache& cache) {
  events_.clear();
  const auto is_number_at = [&](size_t i) { return !std::isnan(next.tokens.lse[first_row + static_cast<int64_t>(i)]); };
  advance(best(best_candidates(next, first_row, sums(), candidates()), is_number_at), cache);
}

void SentenceSearch::extend(Matrix<float> log_p, int64_t first_row, KeyValueCache& cache) {
  events_.clear();
  const std::vector<NextToken> next = next_tokens(log_p, first_row);
  std::vector<Candidate> kept;  // candidates that stay live
  if (t_ < std::ssize(input_.prefix))
    kept = forced(next.front());
  else if (options_.sampling)
    kept = drawn(next);
  else if (input_.terms)
    kept = with_terms(next);
  else
    kept = best(best_candidates(next, sums(), candidates()), [&](size_t i) { return is_number(next[i]); });
  advance(kept, cache);
}

std::vector<double> SentenceSearch::sums() const {
  std::vector<double> sums;
  for (const Live& live : live_) sums.push_back(live.sum);
  return sums;
}

std::vector<SentenceSearch::Node> SentenceSearch::path(int32_t last) const {
  std::vector<Node> nodes;
  for (int32_t n = last; n >= 0; n = nodes_[to_size(n)].before) nodes.push_back(nodes_[to_size(n)]);
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<NextToken> SentenceSearch::next_tokens(Matrix<float> log_p, int64_t first_row) const {
  const bool free = t_ >= std::ssize(input_.prefix);
  const bool repeats_count = options_.repetition_penalty != 1 || options_.no_repeat_ngram > 0;
  std::vector<NextToken> next;
  std::vector<int32_t> history(to_size(t_));
  for (size_t i = 0; i < live_.size(); i++) {
    const std::span<float> row{log_p.row(first_row + static_cast<int64_t>(i)), to_size(log_p.cols)};
    if (repeats_count) std::ranges::transform(path(live_[i].last), history.begin(), &Node::token);
    next.push_back(free ? next_token(row, history, options_) : NextToken{row});
  }
  return next;
}

// Returns the next token of the prefix.
std::vector<Candidate> SentenceSearch::forced(const NextToken& next) const {
  const int32_t token = input_.prefix[to_size(t_)];
  if (!is_number(next)) return {};
  return {{live_.front().sum + static_cast<double>(next.log_q(token)), next.log_p(token), 0, token}};
}

// Draws one token for each sample. The first step after the prefix draws all of them from one hypothesis.
std::vector<Candidate> SentenceSearch::drawn(const std::vector<NextToken>& next) {
  const bool first = t_ == std::ssize(input_.prefix);
  if (first) live_.resize(to_size(options_.n_best), live_.front());
  std::vector<Candidate> kept;
  for (size_t i = 0; i < live_.size(); i++) {
    const size_t row = first ? 0 : i;
    if (first) live_[i].number = static_cast<int64_t>(i);
    const int32_t token = sample(next[row], options_, random_[to_size(live_[i].number)]);
    if (token < 0) {
      if (is_number(next[row])) add_finished(live_[i], t_);
      continue;
    }
    const Candidate c{live_[i].sum + static_cast<double>(next[row].log_q(token)), next[row].log_p(token),
                      static_cast<int32_t>(i), token};
    record(live_[i].number, c);
    if (token == options_.end || t_ + 1 == max_tokens_)
      finish(c);
    else
      kept.push_back(c);
  }
  return kept;
}

// Takes the best 2 · beam candidates. Those that end and are among the best `beam` become finished hypotheses. Returns
// the best `beam` of the others, or none if the sentence is done.
template <class IsNumber>
std::vector<Candidate> SentenceSearch::best(const std::vector<Candidate>& candidates, IsNumber&& is_number_at) {
  const size_t beam = to_size(options_.beam);
  const bool last = t_ + 1 == max_tokens_;
  std::vector<Candidate> kept;
  for (size_t i = 0; i < candidates.size() && (i < beam || kept.size() < beam); i++) {
    const Candidate& c = candidates[i];
    if (i == 0) record(0, c);
    if (i < beam && (c.token == options_.end || last)) {
      finish(c);
      best_ended_ |= i == 0;
    } else if (c.token != options_.end && kept.size() < beam) {
      kept.push_back(c);
    }
  }
  if (candidates.empty() && finished_.empty())
    for (size_t i = 0; i < live_.size(); i++)
      if (is_number_at(i)) add_finished(live_[i], t_);
  if (last || has_enough(kept)) kept.clear();
  return kept;
}

bool SentenceSearch::has_enough(const std::vector<Candidate>& kept) const {
  const bool automatic = options_.early_stopping == EarlyStopping::automatic;
  if (automatic && options_.length_penalty == 0 && options_.coverage_penalty == 0)
    return best_ended_ && std::ssize(finished_) >= options_.n_best;
  if (std::ssize(finished_) < options_.beam) return false;
  const bool at_beam = automatic || options_.early_stopping == EarlyStopping::at_beam || options_.beam == 1;
  return at_beam || kept.empty() || is_unbeaten(kept.front().sum);
}

// Whether no live hypothesis, of which `best_live` is the highest sum, can score above the worst of the best `beam`
// finished ones. With a length_penalty above 0 a hypothesis of the same sum scores higher the longer it is.
bool SentenceSearch::is_unbeaten(double best_live) const {
  const bool longest = options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  std::vector<double> scores;
  for (const Decoded& d : finished_) scores.push_back(d.score);
  const auto worst = scores.begin() + options_.beam - 1;
  std::ranges::nth_element(scores, worst, std::greater<>());
  return score_of(best_live, longest ? max_tokens_ : t_ + 1) <= *worst;
}

// Returns the score of a hypothesis of this many tokens, which counts the tokens that are forced, too.
double SentenceSearch::score_of(double sum, int64_t tokens) const {
  const double length = static_cast<double>(tokens + tokens_forced(input_.start));
  return length == 0 ? sum : sum / std::pow(length, options_.length_penalty);
}

// ---- Required terms

// Returns what the hypothesis that candidate c makes has of the required terms.
RequiredTerms::Progress SentenceSearch::progress(const Candidate& c) const {
  const RequiredTerms::Progress& before = live_[to_size(c.parent)].terms;
  return input_.terms && c.token != options_.end ? input_.terms->after(before, c.token) : before;
}

// Adds the best continuations of a hypothesis, and those that lead to a term.
void SentenceSearch::add_candidates(size_t live, const NextToken& next, std::vector<Candidate>& candidates) const {
  const Live& hypothesis = live_[live];
  const auto first = static_cast<std::ptrdiff_t>(candidates.size());
  for (Candidate c : best_candidates(std::span(&next, 1), std::span(&hypothesis.sum, 1), this->candidates())) {
    c.parent = static_cast<int32_t>(live);
    candidates.push_back(c);
  }
  const std::ptrdiff_t last = std::ssize(candidates);
  input_.terms->visit_next(hypothesis.terms, [&](int32_t token) {
    const auto is_known = [&](const Candidate& c) { return c.token == token; };
    if (std::any_of(candidates.begin() + first, candidates.begin() + last, is_known)) return;
    const double log_q = static_cast<double>(next.log_q(token));
    if (log_q > -INFINITY)
      candidates.push_back({hypothesis.sum + log_q, next.log_p(token), static_cast<int32_t>(live), token});
  });
}

// Keeps the best hypotheses of each group, and finishes those that end. Hypotheses without all terms count only if no
// other is found.
std::vector<Candidate> SentenceSearch::with_terms(const std::vector<NextToken>& next) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < live_.size(); i++)
    if (is_number(next[i])) add_candidates(i, next[i], all);
  std::sort(all.begin(), all.end());
  const bool last = t_ + 1 == max_tokens_;
  std::vector<Candidate> continued;
  std::vector<size_t> groups;
  for (const Candidate& c : all) {
    const RequiredTerms::Progress terms = progress(c);
    if (c.token == options_.end || last) {
      if (is_better_than_found(c.sum, t_ + 1, input_.terms->missing(terms).size())) finish(c);
    } else {
      continued.push_back(c);
      groups.push_back(input_.terms->group(terms));
    }
  }
  std::vector<Candidate> kept;
  const size_t width = to_size(live_hypotheses(input_, options_));
  for (const size_t i : share_among_groups(groups, width)) kept.push_back(continued[i]);
  if (all.empty() && finished_.empty())
    for (size_t i = 0; i < live_.size(); i++)
      if (is_number(next[i])) add_finished(live_[i], t_);
  if (!kept.empty() && !is_better_than_found(kept.front().sum, t_ + 1, 0)) kept.clear();
  return kept;
}

// Whether a hypothesis would be among the best n_best of those that are finished, which it is added to.
bool SentenceSearch::is_better_than_found(double sum, int64_t tokens, size_t missing) const {
  const double score = score_of(sum, tokens);
  return std::ranges::count_if(finished_, [&](const Decoded& d) {
           return d.missing_terms.size() < missing || (d.missing_terms.size() == missing && d.score >= score);
         }) < options_.n_best;
}

// Finishes the hypothesis that ends with candidate c.
void SentenceSearch::finish(const Candidate& c) {
  const Live& parent = live_[to_size(c.parent)];
  nodes_.push_back({parent.last, c.token, c.log_p});
  const auto last = static_cast<int32_t>(nodes_.size()) - 1;
  add_finished({last, 0, c.sum, parent.number, progress(c)}, t_ + 1);
  if (options_.on_step)
    step_.ended.push_back({c.token, c.parent, static_cast<double>(c.log_p), c.sum, score_of(c.sum, t_ + 1)});
}

void SentenceSearch::add_finished(const Live& ended, int64_t tokens) {
  Decoded d;
  d.number = ended.number;
  if (input_.terms) d.missing_terms = input_.terms->missing(ended.terms);
  for (const Node& node : path(ended.last)) {
    d.ended = node.token == options_.end;
    if (!d.ended) d.ids.push_back(node.token);
    d.token_log_probabilities.push_back(node.log_p);
    d.log_probability += static_cast<double>(node.log_p);
  }
  d.score = score_of(ended.sum, tokens);
  finished_.push_back(std::move(d));
}

// Makes the kept candidates the live hypotheses.
void SentenceSearch::advance(const std::vector<Candidate>& kept, KeyValueCache& cache) {
  std::vector<int32_t> parents;
  std::vector<Live> next;
  for (const Candidate& c : kept) {
    const Live& parent = live_[to_size(c.parent)];
    const auto slot = static_cast<int32_t>(parents.size());
    parents.push_back(parent.slot);
    nodes_.push_back({parent.last, c.token, c.log_p});
    next.push_back({static_cast<int32_t>(nodes_.size()) - 1, slot, c.sum, parent.number, progress(c)});
    if (options_.on_step) step_.live.push_back({c.token, c.parent, static_cast<double>(c.log_p), c.sum, {}});
  }
  if (options_.on_step) options_.on_step(std::exchange(step_, {}));
  cache.branch(rows_, parents);
  live_ = std::move(next);
  t_++;
}

void SentenceSearch::record(int64_t number, const Candidate& c) {
  if (!options_.on_token) return;
  const bool last = c.token == options_.end || t_ + 1 == max_tokens_;
  events_.push_back({static_cast<int64_t>(key()), number, c.token, static_cast<double>(c.log_p), last});
}

void SentenceSearch::emit(KeyValueCache&) {
  for (const TokenEvent& event : events_) {
    if (!options_.on_token(event) || event.last) continue;
    const auto live = std::ranges::find(live_, event.hypothesis, &Live::number);
    add_finished(*live, t_);
    live_.erase(live);
  }
}

std::vector<Decoded> SentenceSearch::take_found() {
  std::ranges::stable_sort(finished_, is_better<Decoded>);
  return std::move(finished_);
}

void SentenceSearch::enlarge(KeyValueCache& cache) {
  nodes_.push_back({-1, options_.start, 0});
  live_.clear();
  for (int32_t i = 0; i < live_hypotheses(input_, options_); i++) live_.push_back({.last = 0, .slot = i});
  t_ = max_tokens_ - 1;
  cache.fill(rows_, t_);
}

}  // namespace qkv
