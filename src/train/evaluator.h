// How good a model is on the dev text: its loss without dropout, and BLEU of its greedy translations.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "data/batcher.h"
#include "data/parallel_data.h"
#include "decode/search.h"
#include "model/transformer.h"
#include "text/corpus.h"
#include "text/tokenizer.h"

namespace qkv {

struct TranslationScore {
  double loss = 0, nll = 0;  // per target token
  double bleu = 0;
};

class Evaluator {
 public:
  // `text` is what `data` was made of; its targets are the references.
  Evaluator(ParallelText text, const Tokenizer& source, const Tokenizer& target, int64_t max_length,
            int64_t batch_tokens);

  // Throws Error if a sequence is longer.
  void set_batch_tokens(int64_t batch_tokens);

  TranslationScore evaluate(const Transformer<float>& model, double smoothing, Arena& arena) const;
  // Takes from the arena what evaluate's translation will; its loss takes less than a training step over as long
  // sequences.
  void rehearse(const Transformer<float>& model, Arena& arena) const;
  int64_t longest() const { return data_.longest(); }  // tokens of a source or target
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

 private:
  int64_t translation_tokens() const { return std::min<int64_t>(batch_tokens_, 4096); }

  ParallelText text_;
  Tokenizer target_;
  SearchOptions greedy_;
  ParallelData data_;
  int64_t batch_tokens_ = 0;
  std::vector<std::vector<int32_t>> sources_;
};

}  // namespace qkv
