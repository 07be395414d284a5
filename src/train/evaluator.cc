#include "train/evaluator.h"

#include "core/to_size.h"
#include "decode/batched.h"
#include "qkv/score.h"

namespace qkv {

Evaluator::Evaluator(ParallelText text, const TokenizerPair& tokenizers, const TranslationTokens& tokens,
                     const SentenceEdges& edges, int64_t max_length, int64_t batch_tokens)
    : text_(std::move(text)),
      target_(tokenizers.target),
      start_(edges.start),
      data_(text_, tokenizers.source, tokenizers.target, max_length, pair_tokens(tokens, edges)) {
  set_batch_tokens(batch_tokens);
  greedy_.beam = 1;
  greedy_.end = tokens.end;
  greedy_.never = tokens.never;
  greedy_.min_length = tokens.min_length;
  const auto &before = edges.before, &after = edges.after;
  const size_t longest = to_size(max_length) - std::min(before.size() + after.size(), to_size(max_length) - 1);
  for (const std::string& line : text_.source) {  // every line is translated; lines that are too long are truncated
    std::vector<int32_t>& ids = sources_.emplace_back(tokenizers.source.encode(line));
    if (ids.size() > longest) ids.resize(longest);
    ids.insert(ids.begin(), before.begin(), before.end());
    ids.insert(ids.end(), after.begin(), after.end());
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
  for (const auto& found : translate_ids(model, sources_, greedy_, arena, translation_tokens(), {}, start_))
    hypotheses.push_back(found.empty() ? "" : target_.decode(found.front().ids));

  const double tokens = static_cast<double>(loss.tokens);
  return {loss.loss / tokens, loss.nll / tokens, bleu(hypotheses, text_.target).score};
}

void Evaluator::rehearse(const Transformer<float>& model, Arena& arena) const {
  rehearse_translation(model, sources_, greedy_, arena, translation_tokens(), start_);
}

}  // namespace qkv
