#include "decode/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/fail.h"
#include "core/threads.h"
#include "decode/candidates.h"
#include "decode/key_value_cache.h"
#include "decode/sampler.h"

namespace qkv {
namespace {

// A token of a hypothesis. What comes before it is shared with other hypotheses; −1 is the start.
struct Node {
  int32_t before, token;
  float log_p;
};

struct Live {
  int32_t last = -1;   // its last node
  int32_t slot = 0;    // in the cache
  double sum = 0;      // Σ log q
  int64_t number = 0;  // of the sample
};

struct Sentence {
  SearchInput input;
  int64_t max_tokens = 0;
  std::vector<Node> nodes;
  std::vector<Live> live;
  std::vector<Decoded> finished;
  std::vector<Random> random;      // of each sample
  bool best_ended = false;         // in some step the best candidate of all ended its hypothesis
  int64_t first_row = 0;           // of its live hypotheses in this step's log p
  std::vector<TokenEvent> events;  // of this step

  std::vector<Node> path(int32_t last) const {
    std::vector<Node> nodes_of;
    for (int32_t n = last; n >= 0; n = nodes[static_cast<size_t>(n)].before)
      nodes_of.push_back(nodes[static_cast<size_t>(n)]);
    std::reverse(nodes_of.begin(), nodes_of.end());
    return nodes_of;
  }
};

class Search {
 public:
  Search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options, Arena& arena)
      : models_(models),
        options_(options),
        context_{.arena = arena, .inference = true},
        best_are_enough_(best_are_enough(models, options) &&
                         std::ranges::all_of(inputs, [](const SearchInput& input) { return input.prefix.empty(); })) {
    const int64_t V = models.front().config().target_vocab;
    check(options, V);
    Packed sources;
    int64_t capacity = 0;
    for (const SearchInput& input : inputs) {
      Sentence s;
      s.input = input;
      s.max_tokens = max_tokens(options, std::ssize(input.source), models.max_length());
      check_prefix(s, V);
      if (options.sampling.enabled)
        for (int64_t n = 0; n < options.n_best; n++)
          s.random.push_back(sampling_random(options.sampling.seed, input.source, n));
      capacity = std::max(capacity, s.max_tokens);
      sources.append(input.source);
      sentences_.push_back(std::move(s));
    }
    cache_.emplace(models, sources, width(), capacity, context_);
    for (size_t s = 0; s < sentences_.size(); s++)
      sentences_[s].live.push_back({.slot = cache_->first_slot(static_cast<int64_t>(s))});
  }

  std::vector<std::vector<Decoded>> run() {
    for (int64_t t = 0; any_live(); t++) {
      const Arena::Scope scope(context_.arena);
      const Next next = next_of_all(t);
      parallel_for(std::ssize(sentences_), [&](int64_t s) { advance(s, next, t); });
      if (options_.on_token) tell(t);
    }
    std::vector<std::vector<Decoded>> results;
    for (Sentence& s : sentences_) {
      std::ranges::stable_sort(s.finished, std::greater<>(), &Decoded::score);
      results.push_back(std::move(s.finished));
    }
    return results;
  }

  void rehearse() {
    const Arena::Scope scope(context_.arena);
    for (Sentence& s : sentences_) {
      s.nodes.push_back({-1, options_.start, 0});
      const int32_t first = s.live.front().slot;
      s.live.clear();
      for (int32_t i = 0; i < width(); i++) s.live.push_back({.last = 0, .slot = first + i});
    }
    int64_t longest = 1;
    for (const Sentence& s : sentences_) longest = std::max(longest, s.max_tokens);
    cache_->fill(longest - 1);
    next_of_all(longest - 1);
  }

 private:
  // Hypotheses of a sentence that live side by side.
  int64_t width() const { return options_.sampling.enabled ? options_.n_best : options_.beam; }

  void check_prefix(const Sentence& s, int64_t V) const {
    for (const int32_t id : s.input.prefix)
      if (id < 0 || id >= V || id == options_.end) fail("prefix: token {}, wanted 0 to {} and not the end", id, V - 1);
    if (std::ssize(s.input.prefix) >= s.max_tokens)
      fail("prefix: {} tokens, wanted fewer than the longest translation's {}", s.input.prefix.size(), s.max_tokens);
  }

  bool any_live() const {
    return std::ranges::any_of(sentences_, [](const Sentence& s) { return !s.live.empty(); });
  }

  // The next tokens of all live hypotheses after t tokens: the best of them, if that is enough, or log p of all.
  struct Next {
    BestNext best;
    Matrix<float> log_p;  // [live hypotheses, V]
  };
  Next next_of_all(int64_t t) {
    ids_.clear();
    cache_->begin_step();
    for (size_t i = 0; i < sentences_.size(); i++) {
      Sentence& s = sentences_[i];
      s.first_row = std::ssize(ids_);
      for (const Live& live : s.live) {
        ids_.push_back(live.last < 0 ? options_.start : s.nodes[static_cast<size_t>(live.last)].token);
        cache_->add(static_cast<int64_t>(i), live.slot);
      }
    }
    if (best_are_enough_) return {best_next(models_.front(), *cache_, ids_, t, options_, candidates(), context_), {}};
    return {{}, next_log_probabilities(models_, *cache_, ids_, context_)};
  }

  size_t candidates() const { return 2 * static_cast<size_t>(options_.beam); }  // of a step of beam search

  // Takes a sentence from t to t + 1 tokens.
  void advance(int64_t sequence, const Next& all, int64_t t) {
    Sentence& s = sentences_[static_cast<size_t>(sequence)];
    s.events.clear();
    if (s.live.empty()) return;
    std::vector<double> sums;
    for (const Live& live : s.live) sums.push_back(live.sum);
    if (best_are_enough_) {
      const auto is_number = [&](size_t i) {
        return !std::isnan(all.best.tokens.lse[s.first_row + static_cast<int64_t>(i)]);
      };
      return go_on(sequence, best(s, best_candidates(all.best, s.first_row, sums, candidates()), is_number, t));
    }
    const std::vector<NextToken> next = next_tokens(s, all.log_p, t);
    std::vector<Candidate> kept;  // that live on
    if (t < std::ssize(s.input.prefix))
      kept = forced(s, next.front(), t);
    else if (options_.sampling.enabled)
      kept = drawn(s, next, t);
    else
      kept = best(
          s, best_candidates(next, sums, candidates()), [&](size_t i) { return is_number(next[i]); }, t);
    go_on(sequence, kept);
  }

  std::vector<NextToken> next_tokens(const Sentence& s, Matrix<float> log_p, int64_t t) const {
    const bool free = t >= std::ssize(s.input.prefix);
    const bool repeats_count = options_.repetition_penalty != 1 || options_.no_repeat_ngram > 0;
    std::vector<NextToken> next;
    std::vector<int32_t> history(static_cast<size_t>(t));
    for (size_t i = 0; i < s.live.size(); i++) {
      const std::span<float> row{log_p.row(s.first_row + static_cast<int64_t>(i)), static_cast<size_t>(log_p.cols)};
      if (repeats_count) std::ranges::transform(s.path(s.live[i].last), history.begin(), &Node::token);
      next.push_back(free ? next_token(row, history, options_) : NextToken{row});
    }
    return next;
  }

  static bool is_number(const NextToken& next) { return !std::isnan(next.values.front()); }

  // The next token of the prefix.
  std::vector<Candidate> forced(const Sentence& s, const NextToken& next, int64_t t) const {
    const int32_t token = s.input.prefix[static_cast<size_t>(t)];
    if (!is_number(next)) return {};
    return {{s.live.front().sum + static_cast<double>(next.log_q(token)), next.log_p(token), 0, token}};
  }

  // One token for every sample; the first free step draws them all from one hypothesis.
  std::vector<Candidate> drawn(Sentence& s, const std::vector<NextToken>& next, int64_t t) const {
    const bool first = t == std::ssize(s.input.prefix);
    if (first) s.live.resize(static_cast<size_t>(options_.n_best), s.live.front());
    std::vector<Candidate> kept;
    for (size_t i = 0; i < s.live.size(); i++) {
      const size_t row = first ? 0 : i;
      if (first) s.live[i].number = static_cast<int64_t>(i);
      const int32_t token = sample(next[row], options_.sampling, s.random[static_cast<size_t>(s.live[i].number)]);
      if (token < 0) {
        if (is_number(next[row])) cut(s, s.live[i], t);
        continue;
      }
      const Candidate c{s.live[i].sum + static_cast<double>(next[row].log_q(token)), next[row].log_p(token),
                        static_cast<int32_t>(i), token};
      note(s, s.live[i].number, c, t);
      if (token == options_.end || t + 1 == s.max_tokens)
        finish(s, c, t);
      else
        kept.push_back(c);
    }
    return kept;
  }

  // The best 2 · beam candidates: those that end and are among the best `beam` finish, and of the others the best
  // `beam` live on, unless the sentence is done.
  template <class IsNumber>
  std::vector<Candidate> best(Sentence& s, const std::vector<Candidate>& candidates, IsNumber&& is_number_at,
                              int64_t t) const {
    const size_t beam = static_cast<size_t>(options_.beam);
    const bool last = t + 1 == s.max_tokens;
    std::vector<Candidate> kept;
    for (size_t i = 0; i < candidates.size() && (i < beam || kept.size() < beam); i++) {
      const Candidate& c = candidates[i];
      if (i == 0) note(s, 0, c, t);
      if (i < beam && (c.token == options_.end || last)) {
        finish(s, c, t);
        s.best_ended |= i == 0;
      } else if (c.token != options_.end && kept.size() < beam) {
        kept.push_back(c);
      }
    }
    if (candidates.empty() && s.finished.empty())
      for (size_t i = 0; i < s.live.size(); i++)
        if (is_number_at(i)) cut(s, s.live[i], t);
    if (last || is_done(s)) kept.clear();
    return kept;
  }

  bool is_done(const Sentence& s) const {
    const bool sums = options_.length_penalty == 0 && options_.coverage_penalty == 0;
    return sums ? s.best_ended && std::ssize(s.finished) >= options_.n_best : std::ssize(s.finished) >= options_.beam;
  }

  // A hypothesis that ends with a candidate, as token number t.
  void finish(Sentence& s, const Candidate& c, int64_t t) const {
    const Live& parent = s.live[static_cast<size_t>(c.parent)];
    s.nodes.push_back({parent.last, c.token, c.log_p});
    add_finished(s, std::ssize(s.nodes) - 1, c.sum, t + 1);
  }

  // A hypothesis of t tokens after which nothing may come.
  void cut(Sentence& s, const Live& live, int64_t t) const { add_finished(s, live.last, live.sum, t); }

  void add_finished(Sentence& s, int64_t last, double sum, int64_t tokens) const {
    Decoded d;
    for (const Node& node : s.path(static_cast<int32_t>(last))) {
      d.ended = node.token == options_.end;
      if (!d.ended) d.ids.push_back(node.token);
      d.token_log_probabilities.push_back(node.log_p);
      d.log_probability += static_cast<double>(node.log_p);
    }
    d.score = tokens == 0 ? sum : sum / std::pow(static_cast<double>(tokens), options_.length_penalty);
    s.finished.push_back(std::move(d));
  }

  // The candidates become the live hypotheses, with one token more.
  void go_on(int64_t sequence, const std::vector<Candidate>& kept) {
    Sentence& s = sentences_[static_cast<size_t>(sequence)];
    std::vector<int32_t> parents, slots(kept.size());
    for (const Candidate& c : kept) parents.push_back(s.live[static_cast<size_t>(c.parent)].slot);
    cache_->branch(sequence, parents, slots);
    std::vector<Live> next;
    for (size_t i = 0; i < kept.size(); i++) {
      const Live& parent = s.live[static_cast<size_t>(kept[i].parent)];
      s.nodes.push_back({parent.last, kept[i].token, kept[i].log_p});
      next.push_back({static_cast<int32_t>(s.nodes.size()) - 1, slots[i], kept[i].sum, parent.number});
    }
    s.live = std::move(next);
  }

  void note(Sentence& s, int64_t number, const Candidate& c, int64_t t) const {
    if (!options_.on_token) return;
    const bool last = c.token == options_.end || t + 1 == s.max_tokens;
    s.events.push_back({0, number, c.token, static_cast<double>(c.log_p), last});
  }

  // Tells the caller of this step's tokens; the hypotheses that it wants no more of are cut where they are.
  void tell(int64_t t) {
    for (size_t i = 0; i < sentences_.size(); i++) {
      Sentence& s = sentences_[i];
      for (TokenEvent& event : s.events) {
        event.sequence = static_cast<int64_t>(i);
        if (!options_.on_token(event) || event.last) continue;
        const auto live = std::ranges::find(s.live, event.hypothesis, &Live::number);
        cut(s, *live, t + 1);
        s.live.erase(live);
      }
    }
  }

  const Ensemble& models_;
  const SearchOptions& options_;
  Context context_;
  std::vector<Sentence> sentences_;
  std::optional<KeyValueCache> cache_;
  bool best_are_enough_;
  std::vector<int32_t> ids_;
};

}  // namespace

void check(const SearchOptions& o, int64_t V) {
  const auto at_least = [](const char* name, auto value, auto least) {
    if (!(value >= least)) fail("search: {} is {}, wanted at least {}", name, value, least);
  };
  at_least("beam", o.beam, int64_t{1});
  at_least("n_best", o.n_best, int64_t{1});
  at_least("min_length", o.min_length, int64_t{0});
  at_least("max_length", o.max_length, int64_t{0});
  at_least("no_repeat_ngram", o.no_repeat_ngram, int64_t{0});
  at_least("coverage_penalty", o.coverage_penalty, 0.0);
  at_least("top_k", o.sampling.top_k, int64_t{0});
  if (!std::isfinite(o.length_penalty)) fail("search: length_penalty is {}, wanted a number", o.length_penalty);
  if (!std::isfinite(o.coverage_penalty)) fail("search: coverage_penalty is {}, wanted a number", o.coverage_penalty);
  if (!(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty)))
    fail("search: repetition_penalty is {}, wanted above 0", o.repetition_penalty);
  if (!(o.sampling.temperature > 0 && std::isfinite(o.sampling.temperature)))
    fail("search: temperature is {}, wanted above 0", o.sampling.temperature);
  if (!(o.sampling.top_p > 0 && o.sampling.top_p <= 1))
    fail("search: top_p is {}, wanted above 0 and at most 1", o.sampling.top_p);
  if (!(o.sampling.min_p >= 0 && o.sampling.min_p <= 1))
    fail("search: min_p is {}, wanted 0 to 1", o.sampling.min_p);
  if (!o.sampling.enabled && o.n_best > o.beam)
    fail("search: n_best is {}, wanted at most the beam's {}", o.n_best, o.beam);
  if (o.on_token && !o.sampling.enabled && o.beam > 1)
    fail("search: tokens are told one by one with a beam of {}, wanted 1 or sampling", o.beam);
  for (const int32_t token : o.never)
    if (token < 0 || token >= V) fail("search: token {} is never said, wanted 0 to {}", token, V - 1);
  if (o.end < 0 || o.end >= V || o.start < 0 || o.start >= V)
    fail("search: start {} and end {}, wanted 0 to {}", o.start, o.end, V - 1);
}

int64_t max_tokens(const SearchOptions& options, int64_t S, int64_t model_max_length) {
  const int64_t wanted = options.max_length > 0 ? options.max_length : std::max(2 * S + 16, options.min_length + 1);
  return std::min(wanted, model_max_length);
}

std::vector<std::vector<Decoded>> search(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena) {
  const Arena::Scope scope(arena);
  return Search(models, inputs, options, arena).run();
}

void rehearse_search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options,
                     Arena& arena) {
  const Arena::Scope scope(arena);
  Search(models, inputs, options, arena).rehearse();
}

}  // namespace qkv
