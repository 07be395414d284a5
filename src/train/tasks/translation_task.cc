#include "train/tasks/translation_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/to_size.h"
#include "train/engine/gradient_engine.h"
#include "train/loop/dry_run.h"
#include "train/tasks/objective.h"
#include "train/tasks/source_locations.h"

namespace qkv {

void TranslationTask::partition(const RankPartition& partition) {
  partition_ = partition;
  stream_.partition(partition);
}

Loss TranslationTask::loss_and_gradient(BatchGradients& gradients, Context& c) {
  return gradients.loss_and_gradient(batch_, objective_of(config_), c);
}

std::string TranslationTask::places(const StreamPosition& position, TokenSide side, std::span<const int64_t> rows) {
  partition({});
  seek(position);
  const std::vector<int64_t> lines = stream_.lines();
  LineRanges ranges;
  for (const int64_t s : (side == TokenSide::source ? batch_.source : batch_.target).sequences_of(rows))
    ranges.emplace_back(lines.at(to_size(s)), lines.at(to_size(s)));
  if (rows.empty())
    for (const int64_t line : lines) ranges.emplace_back(line, line);
  return name_lines(std::move(ranges), stream_.path());
}

DevScore TranslationTask::evaluate(const Transformer<float>& model, Arena& arena) {
  const TranslationScore score = evaluator_.evaluate(model, config_.label_smoothing, partition_, arena);
  return {score.loss,
          score.bleu,
          {},
          {{"loss", score.loss, 3}, {"perplexity", std::exp(score.nll), 2}, {"bleu", score.bleu, 2}}};
}

void TranslationTask::dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) {
  const int64_t longest = std::max(stream_.longest(), evaluator_.longest());
  fill_largest_batch(candidate.config(), config_.batch_tokens, longest, batch_);
  Context context = training_context(arena, config_, 0);
  loss_and_gradient(gradients, context);
  evaluator_.dry_run(candidate, partition_, arena);
}

}  // namespace qkv
