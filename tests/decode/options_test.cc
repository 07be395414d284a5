// Every option of the search, compared with a plain search over forced scores that follows docs/decoding.md, and with
// the enumeration of all sequences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/to_size.h"
#include "decode/search/forced.h"
#include "decode/search/sentence_decoder.h"
#include "tests/decode/searcher.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::config_of;
using testing::error_of;
using testing::Ids;
using testing::kEnd;
using testing::Searcher;
using testing::with_threads;

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Found {
  Ids ids;  // including the end token
  double sum = 0, log_p = 0, score = 0;
};

// A reference search that applies the rules one after the other to every token of every hypothesis, without a cache.
class PlainSearch {
 public:
  PlainSearch(Searcher& searcher, Ids source, SearchOptions options, Ids prefix = {})
      : searcher_(searcher), source_(std::move(source)), options_(std::move(options)), prefix_(std::move(prefix)) {}

  std::vector<Found> run() {
    const size_t beam = to_size(options_.beam);
    const size_t longest = to_size(max_tokens(options_, std::ssize(source_), searcher_.model.config().max_length));
    std::vector<Found> live(1), finished;
    bool best_ended = false;
    for (size_t t = 1; !live.empty(); t++) {
      std::vector<Found> all;
      for (const Found& h : live) expand(h, all);
      std::ranges::stable_sort(all, std::greater<>(), &Found::sum);
      all.resize(std::min(all.size(), 2 * beam));
      live.clear();
      for (size_t i = 0; i < all.size(); i++) {
        const bool ends = all[i].ids.back() == kEnd;
        if (i < beam && (ends || t == longest)) {
          finished.push_back(all[i]);
          best_ended |= i == 0;
        } else if (!ends && live.size() < beam) {
          live.push_back(all[i]);
        }
      }
      for (Found& f : finished) f.score = score(f.sum, f.ids.size());
      std::ranges::stable_sort(finished, std::greater<>(), &Found::score);
      if (t == longest || is_done(finished, live, best_ended, longest)) live.clear();
    }
    return finished;
  }

 private:
  double score(double sum, size_t tokens) const {
    return sum / std::pow(static_cast<double>(tokens), options_.length_penalty);
  }

  bool is_done(const std::vector<Found>& finished, const std::vector<Found>& live, bool best_ended,
               size_t longest) const {
    const size_t beam = to_size(options_.beam);
    const EarlyStopping stopping = options_.early_stopping;
    if (stopping == EarlyStopping::automatic && options_.length_penalty == 0 && options_.coverage_penalty == 0)
      return best_ended && finished.size() >= to_size(options_.n_best);
    if (finished.size() < beam) return false;
    if (beam == 1 || stopping == EarlyStopping::automatic || stopping == EarlyStopping::at_beam) return true;
    const bool at_longest = stopping == EarlyStopping::never && options_.length_penalty > 0;
    return std::ranges::none_of(live, [&](const Found& h) {
      return score(h.sum, at_longest ? longest : h.ids.size()) > finished[beam - 1].score;
    });
  }

  void expand(const Found& h, std::vector<Found>& all) {
    const std::vector<double>& p = searcher_.next(source_, h.ids);
    std::vector<double> q = p;
    if (h.ids.size() < prefix_.size()) {
      for (size_t v = 0; v < q.size(); v++)
        if (static_cast<int32_t>(v) != prefix_[h.ids.size()]) q[v] = kNever;
    } else {
      if (static_cast<int64_t>(h.ids.size()) < options_.min_length) {
        q[kEnd] = kNever;
        double sum = 0;
        for (const double x : q) sum += std::exp(x);
        for (double& x : q) x -= std::log(sum);
      }
      for (size_t v = 0; v < q.size(); v++) {
        const int32_t token = static_cast<int32_t>(v);
        if (std::ranges::find(h.ids, token) != h.ids.end()) q[v] = p[v] * options_.repetition_penalty + (q[v] - p[v]);
        if (std::ranges::find(options_.never, token) != options_.never.end() || repeats(h.ids, token)) q[v] = kNever;
      }
    }
    for (size_t v = 0; v < q.size(); v++) {
      if (q[v] == kNever) continue;
      Found next = h;
      next.ids.push_back(static_cast<int32_t>(v));
      next.sum += q[v];
      next.log_p += p[v];
      all.push_back(std::move(next));
    }
  }

  // Returns whether the token would repeat an n-gram of the hypothesis.
  bool repeats(Ids ids, int32_t token) const {
    const size_t n = to_size(options_.no_repeat_ngram);
    ids.push_back(token);
    if (n == 0 || ids.size() < n) return false;
    const Ids last(ids.end() - static_cast<int64_t>(n), ids.end());
    for (size_t i = 0; i + n < ids.size(); i++)
      if (std::equal(last.begin(), last.end(), ids.begin() + static_cast<int64_t>(i))) return true;
    return false;
  }

  Searcher& searcher_;
  const Ids source_;
  const SearchOptions options_;
  const Ids prefix_;
};

// The sums differ by float32 rounding between single steps and a full pass: 1e-5 per token, for at most 20 tokens.
void expect_same(const std::vector<Decoded>& found, const std::vector<Found>& wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (size_t i = 0; i < found.size(); i++) {
    EXPECT_EQ(found[i].with_end(kEnd), wanted[i].ids) << what << ", hypothesis " << i;
    EXPECT_NEAR(found[i].score, wanted[i].score, 2e-4) << what;
    EXPECT_NEAR(found[i].log_probability, wanted[i].log_p, 2e-4) << what;
    double sum = 0;
    for (const float x : found[i].token_log_probabilities) sum += static_cast<double>(x);
    EXPECT_EQ(found[i].token_log_probabilities.size(), wanted[i].ids.size());
    EXPECT_DOUBLE_EQ(sum, found[i].log_probability);
  }
}

// Options that differ from the defaults, by name.
std::vector<std::pair<std::string, SearchOptions>> all_options() {
  std::vector<std::pair<std::string, SearchOptions>> list;
  const auto add = [&](const std::string& name, auto&& change) {
    SearchOptions o;
    o.beam = o.n_best = 3;
    change(o);
    list.emplace_back(name, o);
  };
  add("defaults", [](SearchOptions&) {});
  add("greedy", [](SearchOptions& o) { o.beam = o.n_best = 1; });
  add("sum", [](SearchOptions& o) { o.length_penalty = 0; });
  add("sum, one best", [](SearchOptions& o) { o.length_penalty = 0, o.n_best = 1; });
  add("length penalty 2", [](SearchOptions& o) { o.length_penalty = 2; });
  add("min length", [](SearchOptions& o) { o.min_length = 5; });
  add("min length of greedy", [](SearchOptions& o) { o.min_length = 7, o.beam = o.n_best = 1; });
  add("max length", [](SearchOptions& o) { o.max_length = 3; });
  add("one length", [](SearchOptions& o) { o.min_length = o.max_length = 6; });
  add("repetition penalty", [](SearchOptions& o) { o.repetition_penalty = 1.7; });
  add("repetition reward", [](SearchOptions& o) { o.repetition_penalty = 0.5; });
  add("no repeated token", [](SearchOptions& o) { o.no_repeat_ngram = 1; });
  add("no repeated pair", [](SearchOptions& o) { o.no_repeat_ngram = 2, o.max_length = 12; });
  add("never", [](SearchOptions& o) { o.never = {4, 7, 0}; });
  for (const EarlyStopping stopping : {EarlyStopping::at_beam, EarlyStopping::unbeaten, EarlyStopping::never})
    for (const double penalty : {-1.0, 0.0, 0.6, 2.0})
      for (const int64_t beam : {1, 2, 4})
        add("early stopping", [&](SearchOptions& o) {
          o.early_stopping = stopping, o.length_penalty = penalty, o.beam = o.n_best = beam, o.max_length = 12;
        });
  add("all of them", [](SearchOptions& o) {
    o.min_length = 3, o.max_length = 9, o.repetition_penalty = 1.3, o.no_repeat_ngram = 3, o.never = {5};
    o.length_penalty = 0.7;
  });
  return list;
}

TEST(SearchOptions, MatchTheReferenceSearch) {
  for (uint64_t seed = 1; seed <= 4; seed++) {
    Searcher s(config_of(9, 20, seed % 2 == 0), seed);
    s.parameter("output.bias")[kEnd] = seed < 3 ? 0.5f : -1.5f;
    const Ids source = {5, 3, 8, kEnd};
    with_threads(1, [&] {  // because the steps are too small to parallelize
      for (const auto& [name, options] : all_options())
        expect_same(s.search({source}, options).front(), PlainSearch(s, source, options).run(), name);
      return true;
    });
  }
}

TEST(SearchOptions, HypothesesBeginWithThePrefix) {
  for (uint64_t seed = 1; seed <= 3; seed++) {
    Searcher s(config_of(9, 20), seed);
    const Ids source = {5, 3, 8, kEnd}, prefix = {7, 7, 4};
    for (const auto& [name, options] : all_options()) {
      SearchOptions longer = options;
      if (options.max_length == 3) longer.max_length = 5;
      const auto found = with_threads(1, [&] { return s.search({source}, longer, {prefix}).front(); });
      expect_same(found, with_threads(1, [&] { return PlainSearch(s, source, longer, prefix).run(); }), name);
      for (const Decoded& d : found) EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), d.ids.begin())) << name;
    }
  }
}

TEST(SearchOptions, EachSentenceOfABatchHasItsOwnPrefix) {
  Searcher s(config_of(30, 20));
  const std::vector<Ids> sources = {{5, 9, kEnd}, {6, 7, 8, 9, kEnd}, {5, 9, kEnd}}, prefixes = {{}, {4, 5, 6}, {9}};
  SearchOptions options;
  options.beam = options.n_best = 3;
  const auto together = s.search(sources, options, prefixes);
  for (size_t i = 0; i < sources.size(); i++) {
    const auto alone = s.search({sources[i]}, options, {prefixes[i]}).front();
    ASSERT_EQ(alone.size(), together[i].size());
    for (size_t k = 0; k < alone.size(); k++) EXPECT_EQ(alone[k].ids, together[i][k].ids);
  }
}

TEST(SearchOptions, HypothesisIsTruncatedIfAllTokensAreExcluded) {
  Searcher s(config_of(5, 20));
  SearchOptions options;
  options.beam = options.n_best = 2;
  options.no_repeat_ngram = 1;
  options.min_length = 19;
  const auto found = s.search({{3, kEnd}}, options).front();
  for (const Decoded& d : found) {
    EXPECT_EQ(d.ids.size(), 4u);  // each token except the end token, once
    EXPECT_FALSE(d.ended);
  }
}

TEST(SearchOptions, AlternativesDifferAfterThePrefix) {
  Searcher s(config_of(12, 20));
  s.parameter("output.bias")[kEnd] = 1;
  const Ids source = {5, 3, 8, kEnd};
  for (const Ids& prefix : {Ids{}, Ids{7, 4}}) {
    SearchOptions options;
    options.beam = 2;
    options.n_best = 5;
    const auto found = alternatives(s.model, {{source, prefix}}, options, s.arena).front();
    ASSERT_EQ(found.size(), 5u);
    std::vector<double> next = s.next(source, prefix);
    for (const Decoded& d : found) {  // the most probable token each time
      const auto best = std::ranges::max_element(next);
      ASSERT_TRUE(std::equal(prefix.begin(), prefix.end(), d.ids.begin()));
      EXPECT_EQ(d.with_end(kEnd)[prefix.size()], best - next.begin());
      *best = kNever;
      Ids longer = prefix;
      longer.push_back(static_cast<int32_t>(best - next.begin()));
      if (longer.back() == kEnd) continue;
      options.n_best = 1;
      EXPECT_EQ(d.ids, s.search({source}, options, {longer}).front().front().ids);
      options.n_best = 5;
    }
  }
}

TEST(SearchOptions, CoveragePenaltyIsAddedToTheScores) {
  Searcher s(config_of(12, 20));
  const Ids source = {5, 3, 8, 9, kEnd};
  SearchOptions options;
  options.beam = options.n_best = 4;
  options.coverage_penalty = 0.7;
  options.attention = {0, 1};
  const auto plain = s.search({source}, options).front();
  const auto found = n_best(s.model, {{source, {}}}, options, s.arena).front();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(std::ranges::is_sorted(found, std::greater<>(), &Decoded::score));
  for (const Decoded& d : found) {
    const Ids target = d.with_end(kEnd);
    const auto attention =
        force(s.model, {{source, target}}, 1, ForcedValues::both, options.attention, s.arena).front().attention;
    double coverage = 0;
    for (size_t j = 0; j < source.size(); j++) {
      double sum = 0;
      for (size_t i = 0; i < target.size(); i++) sum += static_cast<double>(attention[i * source.size() + j]);
      coverage += std::log(std::min(1.0, sum));
    }
    const auto before = std::ranges::find(plain, d.ids, &Decoded::ids);
    ASSERT_NE(before, plain.end());
    EXPECT_NEAR(d.score, before->score + 0.7 * coverage, 1e-6);
    EXPECT_LT(d.score, before->score);
  }
}

TEST(SearchOptions, EnsembleOfOneModelTwiceEqualsTheModel) {
  Searcher s(config_of(12, 20));
  const Ids source = {5, 3, 8, kEnd};
  SearchOptions options;
  options.beam = options.n_best = 3;
  const auto wanted = s.search({source}, options).front();
  const auto found = testing::search_all(Ensemble({make_host_inference(s.model), make_host_inference(s.model)}),
                                         {{source, {}}}, options, s.arena)
                         .front();
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); i++) {
    EXPECT_EQ(found[i].ids, wanted[i].ids);
    EXPECT_NEAR(found[i].score, wanted[i].score, 1e-5);
  }
}

TEST(SearchOptions, EnsembleAveragesProbabilities) {
  Searcher a(config_of(12, 20), 1), b(config_of(12, 20, true), 2);
  const Ids source = {5, 3, 8, kEnd};
  SearchOptions options;
  options.beam = options.n_best = 3;
  const Ensemble both({make_host_inference(a.model), make_host_inference(b.model)});
  const auto found = testing::search_all(both, {{source, {}}}, options, a.arena).front();
  for (const Decoded& d : found) {
    const Ids target = d.with_end(kEnd);
    const std::vector<float> of_a = a.forced(source, target), of_b = b.forced(source, target);
    const auto forced = force(both, {{source, target}}, 1, ForcedValues::scores, {}, a.arena).front().log_probabilities;
    for (size_t i = 0; i < target.size(); i++) {
      const float mean = std::log((std::exp(of_a[i]) + std::exp(of_b[i])) / 2);
      EXPECT_NEAR(d.token_log_probabilities[i], mean, 1e-5);
      EXPECT_NEAR(forced[i], mean, 1e-5);
    }
  }
}

TEST(SearchOptions, EnsembleVocabulariesMustHaveEqualSizes) {
  Searcher a(config_of(12, 20)), b(config_of(13, 20));
  EXPECT_EQ(error_of([&] {
              Ensemble({make_host_inference(a.model), make_host_inference(b.model)});
            }),
            "ensemble: vocabularies have 13 and 13 tokens, those of the first model 12 and 12; they must be equal");
}

TEST(SearchOptions, OnTokenReportsEachToken) {
  Searcher s(config_of(30, 20));
  const std::vector<Ids> sources = {{5, 9, kEnd}, {6, 7, 8, 9, kEnd}};
  SearchOptions options;
  options.beam = 1;
  std::vector<Ids> reported(2);
  std::vector<std::vector<float>> log_p(2);
  options.on_token = [&](const TokenEvent& event) {
    const size_t i = to_size(event.sequence);
    reported[i].push_back(event.token);
    log_p[i].push_back(static_cast<float>(event.log_probability));
    return false;
  };
  const auto found = s.search(sources, options);
  for (size_t i = 0; i < 2; i++) {
    EXPECT_EQ(reported[i], found[i].front().with_end(kEnd));
    EXPECT_EQ(log_p[i], found[i].front().token_log_probabilities);
  }
}

TEST(SearchOptions, OnTokenMayEndAHypothesis) {
  Searcher s(config_of(30, 20));
  s.never_ends();
  SearchOptions options;
  options.beam = 1;
  int64_t count = 0;
  options.on_token = [&](const TokenEvent&) { return ++count == 3; };
  const auto found = s.search({{5, 9, kEnd}}, options).front();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().ids.size(), 3u);
  EXPECT_FALSE(found.front().ended);
}

TEST(SearchOptions, ErrorsNameTheOption) {
  Searcher s(config_of(8, 8));
  const auto error_with = [&](auto&& change, const Ids& prefix = {}) {
    SearchOptions options;
    change(options);
    return error_of([&] { s.search({{3, kEnd}}, options, {prefix}); });
  };
  EXPECT_EQ(error_with([](SearchOptions& o) { o.n_best = 6; }),
            "n_best must be at most beam, 5, unless sampling (is 6)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.n_best = 0; }), "n_best must be between 1 and 1024 (is 0)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.length_penalty = NAN; }),
            "length_penalty must be between -10 and 10 (is nan)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.length_penalty = 1e300; }),
            "length_penalty must be between -10 and 10 (is 1e+300)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.coverage_penalty = -1; }),
            "coverage_penalty must be between 0 and 1000 (is -1)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.repetition_penalty = 0; }),
            "repetition_penalty must be above 0 and at most 1000 (is 0)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.temperature = -1; }), "temperature must be at least 0 (is -1)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.top_p = 1.5; }), "top_p must be above 0 and at most 1 (is 1.5)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.never = {8}; }), "never: token must be between 0 and 7 (is 8)");
  EXPECT_EQ(error_with([](SearchOptions& o) { o.on_token = [](const TokenEvent&) { return false; }; }),
            "on_token requires beam = 1 or sampling (beam is 5)");
  EXPECT_EQ(error_with([](SearchOptions&) {}, {3, 3, 3, 3, 3, 3, 3, 3}),
            "prefix must have fewer than 8 tokens, the maximum length of a translation (has 8)");
  EXPECT_EQ(error_with([](SearchOptions&) {}, {kEnd}),
            "prefix: token must be between 0 and 7 and not the end token (is 2)");
}

}  // namespace
}  // namespace qkv
