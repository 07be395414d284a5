#include "train/tasks/evaluator.h"

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/search/batched.h"
#include "qkv/evaluate.h"
#include "train/tasks/objective.h"

namespace qkv {

Evaluator::Evaluator(std::string name, ParallelText text, const TokenizerPair& tokenizers,
                     const TranslationTokens& tokens, const SentenceEdges& edges, int64_t max_length,
                     int64_t batch_tokens)
    : name_(std::move(name)),
      text_(std::move(text)),
      target_(tokenizers.target),
      start_(edges.start),
      data_(text_, tokenizers.source, tokenizers.target, max_length, pair_tokens(tokens, edges)) {
  if (data_.size() == 0)
    fail("{}: no usable sentence pairs for evaluation ({} empty, {} too long: over {} tokens)", name_,
         data_.skipped().empty, data_.skipped().too_long, max_length);
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
  if (batch_tokens < data_.longest())
    fail("{}: batch_tokens must be at least {}, the tokens of its longest sentence (is {})", name_, data_.longest(),
         batch_tokens);
  const Batcher checked(data_, batch_tokens, 0);
  batch_tokens_ = batch_tokens;
}

TranslationScore Evaluator::evaluate(const Transformer<float>& model, double smoothing, const RankPartition& partition,
                                     Arena& arena) const {
  Batch batch;
  Context context{arena};
  const Batcher batcher(data_, batch_tokens_, 0);
  const BatchList batches = batcher.in_order();
  const Loss loss = loss_of_batches(partition, batches.size(), [&](int64_t b) {
    batcher.fill(batches[b], batch);
    return model.loss(batch, smoothing, context);
  });
  const double tokens = static_cast<double>(loss.tokens);
  return {loss.loss / tokens, loss.nll / tokens, bleu(translations(model, partition, arena), text_.target).score};
}

std::vector<std::string> Evaluator::translations(const Transformer<float>& model, const RankPartition& partition,
                                                 Arena& arena) const {
  const auto found = translate_ids(model, sources_of(partition), greedy_, arena, translation_tokens(), {}, start_);
  std::vector<std::vector<int32_t>> ids(sources_.size());
  partition.for_own(std::ssize(sources_), [&, i = size_t{0}](int64_t line) mutable {
    if (const auto& best = found[i++]; !best.empty()) ids[to_size(line)] = best.front().ids;
  });
  partition.all_gather_lists(ids, {model.config().max_length, model.config().target_vocab});
  std::vector<std::string> lines;
  for (const auto& translation : ids) lines.push_back(translation.empty() ? "" : target_.decode(translation));
  return lines;
}

std::vector<std::vector<int32_t>> Evaluator::sources_of(const RankPartition& partition) const {
  std::vector<std::vector<int32_t>> own;
  partition.for_own(std::ssize(sources_), [&](int64_t line) { own.push_back(sources_[to_size(line)]); });
  return own;
}

void Evaluator::dry_run(const Transformer<float>& model, const RankPartition& partition, Arena& arena) const {
  rehearse_translation(model, sources_of(partition), greedy_, arena, translation_tokens(), start_);
}

}  // namespace qkv
