// Scores a translator on the dev text: loss without dropout and BLEU of greedy translations.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "data/batcher.h"
#include "data/parallel_data.h"
#include "decode/search/search.h"
#include "io/runs/translation_config.h"
#include "model/transformer.h"
#include "ranks/rank_partition.h"
#include "text/parallel_corpus.h"
#include "text/tokenizer.h"

namespace qkv {

// Returns the tokens around the pairs that train a translator: those that it reads and writes in inference.
inline PairTokens pair_tokens(const TranslationTokens& tokens, const SentenceEdges& edges) {
  return {edges.before, edges.after, edges.start, tokens.end};
}

struct TranslationScore {
  double loss = 0, nll = 0;  // per target token
  double bleu = 0;
};

class Evaluator {
 public:
  // `text` is the dev text; its targets are the references. `name` names its files in errors. Throws Error if the
  // text has no usable pair.
  Evaluator(std::string name, ParallelText text, const TokenizerPair& tokenizers, const TranslationTokens& tokens,
            const SentenceEdges& edges, int64_t max_length, int64_t batch_tokens);

  // Sets the number of tokens per batch. Throws Error if a sequence has more.
  void set_batch_tokens(int64_t batch_tokens);

  // Batches and lines are dealt out to ranks, which all get the score.
  TranslationScore evaluate(const Transformer<float>& model, double smoothing, const RankPartition& partition,
                            Arena& arena) const;
  // Uses as much of the arena as the translations of evaluate will. Its loss needs less than a training step on
  // sequences of this length.
  void dry_run(const Transformer<float>& model, const RankPartition& partition, Arena& arena) const;
  int64_t longest() const { return data_.longest(); }  // tokens of the longest source or target
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

 private:
  std::vector<std::string> translations(const Transformer<float>& model, const RankPartition& partition,
                                        Arena& arena) const;
  std::vector<std::vector<int32_t>> sources_of(const RankPartition& partition) const;  // that this rank translates
  int64_t translation_tokens() const { return std::min<int64_t>(batch_tokens_, 4096); }

  std::string name_;  // of the text
  ParallelText text_;
  Tokenizer target_;
  SearchOptions greedy_;
  std::vector<int32_t> start_;  // tokens that the decoder starts from
  ParallelData data_;
  int64_t batch_tokens_ = 0;
  std::vector<std::vector<int32_t>> sources_;
};

}  // namespace qkv
