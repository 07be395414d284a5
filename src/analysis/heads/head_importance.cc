#include "analysis/heads/head_importance.h"

#include <cmath>

#include "core/to_size.h"
#include "model/heads/masked_loss.h"

namespace qkv {
namespace {

// Adds the gradients of the last item of each text alone.
Loss last_item_loss(const HeadTexts& texts, const Batch& batch, Matrix<const float> h, Matrix<float> dh, Context& c) {
  Batch last;
  for (int64_t s = 0; s < batch.target.sequences(); s++) {
    last.masked.push_back(batch.target.offsets[to_size(s) + 1] - 1);
    last.labels.push_back(batch.labels[to_size(last.masked.back())]);
  }
  return masked_loss_and_gradient<float>({nullptr, texts.model->output()}, h, last, 0, dh, c);
}

}  // namespace

template <class Real>
void ImportanceProbe::see(std::string_view op, Pass pass, Matrix<Real> m) {
  SublayerPlace place;
  const bool is_output = op == "attention" && pass == Pass::forward, is_gradient = op == "heads";
  if (!(is_output || is_gradient) || !find(place)) return;
  std::vector<double>& outputs = outputs_[place];
  if (is_output) {
    outputs.clear();
    for (int64_t n = 0; n < m.rows; n++) outputs.insert(outputs.end(), m.row(n), m.row(n) + m.cols);
    return;
  }
  const int64_t width = m.cols / heads_;
  std::vector<double>& derivatives = derivatives_[place];
  derivatives.assign(to_size(m.rows * heads_), 0);
  for (int64_t n = 0; n < m.rows; n++)
    for (int64_t e = 0; e < m.cols; e++)
      derivatives[to_size(n * heads_ + e / width)] += outputs[to_size(n * m.cols + e)] * static_cast<double>(m(n, e));
}

std::vector<double> head_importance(HeadTexts& texts, std::span<const std::vector<size_t>> batches, Arena& arena) {
  ParameterList<float>& parameters = texts.model->parameters();
  parameters.freeze([](const Parameter<float>&) { return true; });
  parameters.allocate_gradients();
  const std::vector<HeadPlace> places = all_heads(texts.config());
  const int64_t H = texts.config().attention.heads;
  std::vector<double> sums(places.size());
  std::vector<int64_t> tokens(places.size());
  for (const std::vector<size_t>& chosen : batches) {
    const Arena::Scope scope(arena);
    ImportanceProbe probe(H);
    Context c{.arena = arena, .probe = &probe};
    const Batch batch = batch_of(texts, chosen, texts.config().is_encoder_only());
    if (texts.kind == RunKind::recommender)
      texts.model->loss_and_gradient(
          batch, [&](Matrix<const float> h, Matrix<float> dh) { return last_item_loss(texts, batch, h, dh, c); }, c);
    else
      texts.model->loss_and_gradient(batch, Objective(), c);
    for (size_t p = 0; p < places.size(); p++) {
      const std::vector<double>& derivatives = probe.derivatives(sublayer_of(places[p]));
      for (size_t k = to_size(places[p].head); k < derivatives.size(); k += to_size(H)) {
        sums[p] += std::abs(derivatives[k]);
        tokens[p]++;
      }
    }
  }
  for (size_t p = 0; p < places.size(); p++) sums[p] /= static_cast<double>(tokens[p]);
  return sums;
}

}  // namespace qkv
