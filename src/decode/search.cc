#include "decode/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/fail.h"
#include "core/fields.h"
#include "core/threads.h"
#include "core/to_size.h"
#include "decode/candidates.h"
#include "decode/key_value_cache.h"
#include "decode/sampler.h"

namespace qkv {
namespace {

// A token of a hypothesis. Hypotheses share the nodes of a common beginning; −1 is the start.
struct Node {
  int32_t before, token;
  float log_p;
};

// A hypothesis that is not finished.
struct Live {
  int32_t last = -1;   // last node
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
  std::vector<Random> random;      // random numbers of each sample
  bool best_ended = false;         // the best candidate of some step ended its hypothesis
  int64_t first_row = 0;           // row of the first live hypothesis in log p of this step
  std::vector<TokenEvent> events;  // tokens of this step

  std::vector<Node> path(int32_t last) const {
    std::vector<Node> nodes_of;
    for (int32_t n = last; n >= 0; n = nodes[to_size(n)].before) nodes_of.push_back(nodes[to_size(n)]);
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
      s.max_tokens = max_tokens(options, std::ssize(input.source), models.max_length() - tokens_forced(input.start));
      check_start(s, V);
      check_prefix(s, V);
      if (options.sampling)
        for (int64_t n = 0; n < options.n_best; n++) s.random.push_back(sampling_random(options.seed, input.source, n));
      capacity = std::max(capacity, s.max_tokens + tokens_forced(input.start));
      sources.append(input.source);
      sentences_.push_back(std::move(s));
    }
    cache_.emplace(models, sources, width(), capacity, context_);
    for (size_t s = 0; s < sentences_.size(); s++)
      sentences_[s].live.push_back({.slot = cache_->first_slot(static_cast<int64_t>(s))});
    read_starts();
  }

  std::vector<std::vector<Decoded>> decode() {
    for (int64_t t = 0; any_live(); t++) {
      const Arena::Scope scope(context_.arena);
      const Next next = next_of_all(t);
      parallel_for(std::ssize(sentences_), [&](int64_t s) { step(s, next, t); });
      if (options_.on_token) emit_tokens(t);
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
  // Returns the number of hypotheses of a sentence that may be live at once.
  int64_t width() const { return options_.sampling ? options_.n_best : options_.beam; }

  void check_start(const Sentence& s, int64_t V) const {
    for (const int32_t id : s.input.start)
      if (id < 0 || id >= V) fail("start: token must be between 0 and {} (is {})", V - 1, id);
    if (!sentences_.empty() && tokens_forced(s.input.start) != tokens_forced(sentences_.front().input.start))
      fail("start must have the same number of tokens in all sentences of a batch");
    if (s.max_tokens < 1) fail("start must have fewer tokens than the model's max_length");
  }

  // Reads the tokens that the decoder starts from into the cache, except for the last one, which the first step reads.
  void read_starts() {
    if (sentences_.empty()) return;
    for (size_t i = 0; i < to_size(tokens_forced(sentences_.front().input.start)); i++) {
      const Arena::Scope scope(context_.arena);
      ids_.clear();
      cache_->begin_step();
      for (size_t s = 0; s < sentences_.size(); s++) {
        ids_.push_back(sentences_[s].input.start[i]);
        cache_->add(static_cast<int64_t>(s), sentences_[s].live.front().slot);
      }
      for (size_t m = 0; m < models_.size(); m++) cache_->step(m, ids_, context_);
    }
  }

  // Returns the token that the first step reads.
  int32_t start_of(const Sentence& s) const { return s.input.start.empty() ? options_.start : s.input.start.back(); }

  void check_prefix(const Sentence& s, int64_t V) const {
    for (const int32_t id : s.input.prefix)
      if (id < 0 || id >= V || id == options_.end)
        fail("prefix: token must be between 0 and {} and not the end token (is {})", V - 1, id);
    if (std::ssize(s.input.prefix) >= s.max_tokens)
      fail("prefix must have fewer than {} tokens, the maximum length of a translation (has {})", s.max_tokens,
           s.input.prefix.size());
  }

  bool any_live() const {
    return std::ranges::any_of(sentences_, [](const Sentence& s) { return !s.live.empty(); });
  }

  // The next tokens of all live hypotheses: only the best ones if these are sufficient, otherwise log p of all.
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
        ids_.push_back(live.last < 0 ? start_of(s) : s.nodes[to_size(live.last)].token);
        cache_->add(static_cast<int64_t>(i), live.slot);
      }
    }
    if (best_are_enough_) return {best_next(models_.front(), *cache_, ids_, t, options_, candidates(), context_), {}};
    return {{}, next_log_probabilities(models_, *cache_, ids_, context_)};
  }

  // Returns the number of candidates per step of beam search.
  size_t candidates() const { return 2 * to_size(options_.beam); }

  // Extends the hypotheses of a sentence from t to t + 1 tokens.
  void step(int64_t sequence, const Next& all, int64_t t) {
    Sentence& s = sentences_[to_size(sequence)];
    s.events.clear();
    if (s.live.empty()) return;
    std::vector<double> sums;
    for (const Live& live : s.live) sums.push_back(live.sum);
    if (best_are_enough_) {
      const auto is_number = [&](size_t i) {
        return !std::isnan(all.best.tokens.lse[s.first_row + static_cast<int64_t>(i)]);
      };
      return advance(sequence, best(s, best_candidates(all.best, s.first_row, sums, candidates()), is_number, t));
    }
    const std::vector<NextToken> next = next_tokens(s, all.log_p, t);
    std::vector<Candidate> kept;  // candidates that stay live
    if (t < std::ssize(s.input.prefix))
      kept = forced(s, next.front(), t);
    else if (options_.sampling)
      kept = drawn(s, next, t);
    else
      kept = best(
          s, best_candidates(next, sums, candidates()), [&](size_t i) { return is_number(next[i]); }, t);
    advance(sequence, kept);
  }

  std::vector<NextToken> next_tokens(const Sentence& s, Matrix<float> log_p, int64_t t) const {
    const bool free = t >= std::ssize(s.input.prefix);
    const bool repeats_count = options_.repetition_penalty != 1 || options_.no_repeat_ngram > 0;
    std::vector<NextToken> next;
    std::vector<int32_t> history(to_size(t));
    for (size_t i = 0; i < s.live.size(); i++) {
      const std::span<float> row{log_p.row(s.first_row + static_cast<int64_t>(i)), to_size(log_p.cols)};
      if (repeats_count) std::ranges::transform(s.path(s.live[i].last), history.begin(), &Node::token);
      next.push_back(free ? next_token(row, history, options_) : NextToken{row});
    }
    return next;
  }

  static bool is_number(const NextToken& next) { return !std::isnan(next.values.front()); }

  // Returns the next token of the prefix.
  std::vector<Candidate> forced(const Sentence& s, const NextToken& next, int64_t t) const {
    const int32_t token = s.input.prefix[to_size(t)];
    if (!is_number(next)) return {};
    return {{s.live.front().sum + static_cast<double>(next.log_q(token)), next.log_p(token), 0, token}};
  }

  // Draws one token for each sample. The first step after the prefix draws all of them from one hypothesis.
  std::vector<Candidate> drawn(Sentence& s, const std::vector<NextToken>& next, int64_t t) const {
    const bool first = t == std::ssize(s.input.prefix);
    if (first) s.live.resize(to_size(options_.n_best), s.live.front());
    std::vector<Candidate> kept;
    for (size_t i = 0; i < s.live.size(); i++) {
      const size_t row = first ? 0 : i;
      if (first) s.live[i].number = static_cast<int64_t>(i);
      const int32_t token = sample(next[row], options_, s.random[to_size(s.live[i].number)]);
      if (token < 0) {
        if (is_number(next[row])) finish_early(s, s.live[i], t);
        continue;
      }
      const Candidate c{s.live[i].sum + static_cast<double>(next[row].log_q(token)), next[row].log_p(token),
                        static_cast<int32_t>(i), token};
      record(s, s.live[i].number, c, t);
      if (token == options_.end || t + 1 == s.max_tokens)
        finish(s, c, t);
      else
        kept.push_back(c);
    }
    return kept;
  }

  // Takes the best 2 · beam candidates. Those that end and are among the best `beam` become finished hypotheses.
  // Returns the best `beam` of the others, or none if the sentence is done.
  template <class IsNumber>
  std::vector<Candidate> best(Sentence& s, const std::vector<Candidate>& candidates, IsNumber&& is_number_at,
                              int64_t t) const {
    const size_t beam = to_size(options_.beam);
    const bool last = t + 1 == s.max_tokens;
    std::vector<Candidate> kept;
    for (size_t i = 0; i < candidates.size() && (i < beam || kept.size() < beam); i++) {
      const Candidate& c = candidates[i];
      if (i == 0) record(s, 0, c, t);
      if (i < beam && (c.token == options_.end || last)) {
        finish(s, c, t);
        s.best_ended |= i == 0;
      } else if (c.token != options_.end && kept.size() < beam) {
        kept.push_back(c);
      }
    }
    if (candidates.empty() && s.finished.empty())
      for (size_t i = 0; i < s.live.size(); i++)
        if (is_number_at(i)) finish_early(s, s.live[i], t);
    if (last || is_done(s)) kept.clear();
    return kept;
  }

  bool is_done(const Sentence& s) const {
    const bool sums = options_.length_penalty == 0 && options_.coverage_penalty == 0;
    return sums ? s.best_ended && std::ssize(s.finished) >= options_.n_best : std::ssize(s.finished) >= options_.beam;
  }

  // Finishes the hypothesis that ends with candidate c, its token number t.
  void finish(Sentence& s, const Candidate& c, int64_t t) const {
    const Live& parent = s.live[to_size(c.parent)];
    s.nodes.push_back({parent.last, c.token, c.log_p});
    add_finished(s, std::ssize(s.nodes) - 1, c.sum, t + 1);
  }

  // Finishes a hypothesis of t tokens without an end token.
  void finish_early(Sentence& s, const Live& live, int64_t t) const { add_finished(s, live.last, live.sum, t); }

  void add_finished(Sentence& s, int64_t last, double sum, int64_t tokens) const {
    Decoded d;
    for (const Node& node : s.path(static_cast<int32_t>(last))) {
      d.ended = node.token == options_.end;
      if (!d.ended) d.ids.push_back(node.token);
      d.token_log_probabilities.push_back(node.log_p);
      d.log_probability += static_cast<double>(node.log_p);
    }
    const double length = static_cast<double>(tokens + tokens_forced(s.input.start));
    d.score = length == 0 ? sum : sum / std::pow(length, options_.length_penalty);
    s.finished.push_back(std::move(d));
  }

  // Makes the kept candidates the live hypotheses.
  void advance(int64_t sequence, const std::vector<Candidate>& kept) {
    Sentence& s = sentences_[to_size(sequence)];
    std::vector<int32_t> parents, slots(kept.size());
    for (const Candidate& c : kept) parents.push_back(s.live[to_size(c.parent)].slot);
    cache_->branch(sequence, parents, slots);
    std::vector<Live> next;
    for (size_t i = 0; i < kept.size(); i++) {
      const Live& parent = s.live[to_size(kept[i].parent)];
      s.nodes.push_back({parent.last, kept[i].token, kept[i].log_p});
      next.push_back({static_cast<int32_t>(s.nodes.size()) - 1, slots[i], kept[i].sum, parent.number});
    }
    s.live = std::move(next);
  }

  void record(Sentence& s, int64_t number, const Candidate& c, int64_t t) const {
    if (!options_.on_token) return;
    const bool last = c.token == options_.end || t + 1 == s.max_tokens;
    s.events.push_back({0, number, c.token, static_cast<double>(c.log_p), last});
  }

  // Reports the tokens of this step to on_token, and finishes the hypotheses for which it returns true.
  void emit_tokens(int64_t t) {
    for (size_t i = 0; i < sentences_.size(); i++) {
      Sentence& s = sentences_[i];
      for (TokenEvent& event : s.events) {
        event.sequence = static_cast<int64_t>(i);
        if (!options_.on_token(event) || event.last) continue;
        const auto live = std::ranges::find(s.live, event.hypothesis, &Live::number);
        finish_early(s, *live, t + 1);
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
  check_ranges<DecodingOptions>(o);
  if (!o.sampling && o.n_best > o.beam)
    fail("n_best must be at most beam, {}, unless sampling (is {})", o.beam, o.n_best);
  if (o.on_token && !o.sampling && o.beam > 1) fail("on_token requires beam = 1 or sampling (beam is {})", o.beam);
  for (const int32_t token : o.never)
    if (token < 0 || token >= V) fail("never: token must be between 0 and {} (is {})", V - 1, token);
  for (const auto& [name, token] : {std::pair{"start", o.start}, {"end", o.end}})
    if (token < 0 || token >= V) fail("{} token must be between 0 and {} (is {})", name, V - 1, token);
}

int64_t max_tokens(const SearchOptions& options, int64_t S, int64_t model_max_length) {
  const int64_t wanted = options.max_length > 0 ? options.max_length : std::max(2 * S + 16, options.min_length + 1);
  return std::min(wanted, model_max_length);
}

std::vector<std::vector<Decoded>> search(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena) {
  const Arena::Scope scope(arena);
  return Search(models, inputs, options, arena).decode();
}

void rehearse_search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options,
                     Arena& arena) {
  const Arena::Scope scope(arena);
  Search(models, inputs, options, arena).rehearse();
}

}  // namespace qkv
