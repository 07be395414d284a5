// The search of one sentence: its hypotheses, and which tokens continue them.
#pragma once

#include <vector>

#include "core/random.h"
#include "decode/search/candidates.h"
#include "decode/search/hypothesis.h"
#include "decode/search/key_value_cache.h"

namespace qkv {

// A sentence for a search. The options and what the input refers to must outlive its search.
struct SearchTask {
  uint64_t key = 0;      // names the sentence in the search
  int64_t sequence = 0;  // its name in TokenEvent
  SearchInput input = {};
  const SearchOptions* options = nullptr;
};

class SentenceSearch {
 public:
  SentenceSearch(const Ensemble& models, const SearchTask& task, KeyValueCache::Sequence rows);

  uint64_t key() const { return task_.key; }
  int64_t tokens() const { return t_; }  // returns the number of tokens of each live hypothesis
  size_t hypotheses() const { return live_.size(); }
  bool is_done() const { return live_.empty(); }

  // How the next tokens are computed: the best candidates() of each hypothesis without excluded(), or log p of all.
  bool needs_all() const { return needs_all_; }
  const Excluded& excluded() const { return t_ < task_.options->min_length ? excluded_at_first_ : excluded_; }
  size_t candidates() const { return 2 * to_size(task_.options->beam); }

  // Adds the tokens that the decoder starts from, except for the last one, to a step of the cache.
  void read_start(KeyValueCache& cache, std::vector<int32_t>& ids);
  // Adds the last token of each hypothesis.
  void read(KeyValueCache& cache, std::vector<int32_t>& ids);

  // Extends the hypotheses by one token, given the rows of `next` from first_row on.
  void extend(const BestNext& next, int64_t first_row, KeyValueCache& cache);
  void extend(Matrix<float> log_p, int64_t first_row, KeyValueCache& cache);

  // Reports the tokens of the last step to on_token, and finishes the hypotheses for which it returns true.
  void emit_tokens();

  // Returns the finished hypotheses, best first.
  std::vector<Decoded> take_found();

  // Makes as many hypotheses live as there can be, of as many tokens as a step can read.
  void dry_run(KeyValueCache& cache);

  KeyValueCache::Sequence& rows() { return rows_; }
  void close(KeyValueCache& cache) { cache.close(rows_); }

  bool paused = false;

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
  };

  std::vector<Node> path(int32_t last) const;
  std::vector<double> sums() const;
  std::vector<NextToken> next_tokens(Matrix<float> log_p, int64_t first_row) const;
  std::vector<Candidate> forced(const NextToken& next) const;
  std::vector<Candidate> drawn(const std::vector<NextToken>& next);
  template <class IsNumber>
  std::vector<Candidate> best(const std::vector<Candidate>& candidates, IsNumber&& is_number_at);
  bool has_enough(const std::vector<Candidate>& kept) const;
  bool is_unbeaten(double best_live) const;
  void finish(const Candidate& c);
  void finish_early(const Live& live, int64_t tokens) { add_finished(live.last, live.sum, tokens); }
  void add_finished(int64_t last, double sum, int64_t tokens);
  double score_of(double sum, int64_t tokens) const;
  void advance(const std::vector<Candidate>& kept, KeyValueCache& cache);
  void record(int64_t number, const Candidate& c);

  const SearchTask task_;
  const int64_t max_tokens_;
  const bool needs_all_;
  Excluded excluded_, excluded_at_first_;  // from min_length tokens on, and before
  KeyValueCache::Sequence rows_;
  int64_t t_ = 0;
  std::vector<Node> nodes_;
  std::vector<Live> live_;
  std::vector<Decoded> finished_;
  std::vector<Random> random_;      // random numbers of each sample
  bool best_ended_ = false;         // the best candidate of some step ended its hypothesis
  std::vector<TokenEvent> events_;  // tokens of this step
};

}  // namespace qkv
