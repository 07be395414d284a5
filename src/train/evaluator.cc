#include "train/evaluator.h"

#include "core/to_size.h"
#include "decode/batched.h"
#include "qkv/score.h"

namespace qkv {

Evaluator::Evaluator(ParallelText text, const Tokenizer& source, const Tokenizer& target, int64_t max_length,
                     int64_t batch_tokens)
    : text_(std::move(text)), target_(target), data_(text_, source, target, max_length) {
  set_batch_tokens(batch_tokens);
  greedy_.beam = 1;
  greedy_.start = target_.start();
  greedy_.end = target_.end();
  for (const std::string& line : text_.source) {  // every line is translated; lines that are too long are truncated
    sources_.push_back(source.encode(line));
    if (static_cast<int64_t>(sources_.back().size()) >= max_length) sources_.back().resize(to_size(max_length) - 1);
    sources_.back().push_back(source.end());
  }
}

void Evaluator::set_batch_tokens(int64_t batch_tokens) {
  const Batcher checked(data_, batch_tokens, 0);
  batch_tokens_ = batch_tokens;
}

TranslationScore Evaluator::evaluate(const Transformer<float>& model, double smoothing, Arena& arena) const {
  Loss loss;
  Batch batch;
  Context context{arena};
  const Batcher batcher(data_, batch_tokens_, 0);
  const BatchList batches = batcher.in_order();
  for (int64_t b = 0; b < batches.size(); b++) {
    batcher.fill(batches[b], batch);
    loss += model.loss(batch, smoothing, context);
  }

  std::vector<std::string> hypotheses;
  for (const auto& found : translate_ids(model, sources_, greedy_, arena, translation_tokens()))
    hypotheses.push_back(found.empty() ? "" : target_.decode(found.front().ids));

  const double tokens = static_cast<double>(loss.tokens);
  return {loss.loss / tokens, loss.nll / tokens, bleu(hypotheses, text_.target).score};
}

void Evaluator::rehearse(const Transformer<float>& model, Arena& arena) const {
  rehearse_translation(model, sources_, greedy_, arena, translation_tokens());
}

}  // namespace qkv
