#include "train/translation_task.h"

#include <algorithm>
#include <cmath>

#include "train/objective.h"
#include "train/rehearsal.h"

namespace qkv {

void TranslationTask::deal_out(const Deal& deal) {
  deal_ = deal;
  stream_.deal_out(deal);
}

Loss TranslationTask::loss_and_gradient(const Transformer<float>& model, Context& c) {
  return model.loss_and_gradient(batch_, objective_of(config_), c);
}

DevScore TranslationTask::evaluate(const Transformer<float>& model, Arena& arena) {
  const TranslationScore score = evaluator_.evaluate(model, config_.label_smoothing, deal_, arena);
  return {score.loss,
          score.bleu,
          {{"loss", score.loss, 3}, {"perplexity", std::exp(score.nll), 2}, {"bleu", score.bleu, 2}}};
}

void TranslationTask::rehearse(const Transformer<float>& model, const Transformer<float>& candidate, Arena& arena) {
  rehearse_step(model, config_, std::max(stream_.longest(), evaluator_.longest()), batch_, arena);
  evaluator_.rehearse(candidate, deal_, arena);
}

}  // namespace qkv
