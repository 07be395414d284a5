// The search of one sentence: its hypotheses, and which tokens continue them.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/to_size.h"
#include "decode/engine/sequence.h"
#include "decode/search/candidates.h"
#include "decode/search/hypothesis.h"

namespace qkv {

class SentenceSearch : public Sequence {
 public:
  // key: names the sentence in TokenEvent, too. The options and what the input refers to must outlive the search.
  SentenceSearch(const Ensemble& models, uint64_t key, const SearchInput& input, const SearchOptions& options);

  std::span<const int32_t> source() const override { return input_.source; }
  void start(KeyValueCache&, KeyValueCache::Sentence&& rows) override { rows_ = std::move(rows); }
  void close(KeyValueCache& cache) override { cache.close(rows_); }

  // Adds the last token of each hypothesis; at first, those that the decoder starts from.
  void read(KeyValueCache& cache) override;
  RowRange predicting() const override { return predicting_; }
  const Excluded* excluded() const override;
  size_t candidates() const override { return 2 * to_size(options_.beam); }

  void extend(const BestNext& next, int64_t first_row, KeyValueCache& cache) override;
  void extend(Matrix<float> log_p, int64_t first_row, KeyValueCache& cache) override;
  // Reports the tokens of the last step to on_token, and finishes the hypotheses for which it returns true.
  void emit(KeyValueCache& cache) override;
  bool is_done() const override { return live_.empty(); }

  // Returns all finished hypotheses, best first: about `beam` for beam search, n_best for sampling, none if the model's
  // output is NaN. Scores exclude the coverage penalty, which only keeps the search from stopping early.
  std::vector<Decoded> take_found();

  // Makes as many hypotheses live as there can be, of as many tokens as a step can read.
  void enlarge(KeyValueCache& cache);

 private:
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
    RequiredTerms::Progress terms = {};
  };

  std::vector<Node> path(int32_t last) const;
  std::vector<double> sums() const;
  std::vector<NextToken> next_tokens(Matrix<float> log_p, int64_t first_row) const;
  std::vector<Candidate> forced(const NextToken& next) const;
  std::vector<Candidate> drawn(const std::vector<NextToken>& next);
  std::vector<Candidate> with_terms(const std::vector<NextToken>& next);
  void add_candidates(size_t live, const NextToken& next, std::vector<Candidate>& candidates) const;
  template <class IsNumber>
  std::vector<Candidate> best(const std::vector<Candidate>& candidates, IsNumber&& is_number_at);
  bool has_enough(const std::vector<Candidate>& kept) const;
  bool is_unbeaten(double best_live) const;
  bool is_better_than_found(double sum, int64_t tokens, size_t missing) const;
  RequiredTerms::Progress progress(const Candidate& c) const;
  void finish(const Candidate& c);
  void add_finished(const Live& ended, int64_t tokens);
  double score_of(double sum, int64_t tokens) const;
  void advance(const std::vector<Candidate>& kept, KeyValueCache& cache);
  void record(int64_t number, const Candidate& c);

  const SearchInput input_;
  const SearchOptions& options_;
  const int64_t max_tokens_;
  const bool needs_all_;
  Excluded excluded_, excluded_at_first_;  // from min_length tokens on, and before
  KeyValueCache::Sentence rows_;
  RowRange predicting_;  // the hypotheses in the current step
  int64_t t_ = 0;
  std::vector<Node> nodes_;
  std::vector<Live> live_;
  std::vector<Decoded> finished_;
  std::vector<Random> random_;      // random numbers of each sample
  bool best_ended_ = false;         // the best candidate of some step ended its hypothesis
  std::vector<TokenEvent> events_;  // tokens of this step
  SearchStep step_;                 // for on_step, if it is set
};

}  // namespace qkv
