#include "program/explain/norm_steps.h"

#include <utility>

#include "core/arena.h"
#include "core/fail.h"
#include "core/to_size.h"
#include "ops/layer_norm.h"

namespace qkv {
namespace {

// (x − μ) / σ, without μ for RMSNorm.
std::string normalized(const NormSteps& steps) {
  return steps.place.kind == NormKind::rms ? steps.x->name + " / σ" : "(" + steps.x->name + " − μ) / σ";
}

const ExplainedStep& add_statistics(StepRecorder& to, const NormSteps& norm) {
  const bool rms = norm.place.kind == NormKind::rms;
  ExplainedStep step{"statistics_" + norm.place.number,
                     rms ? "σ" : "μ, σ",
                     rms ? "√(mean of the squares + ε) of each row" : "mean and √(variance + ε) of each row",
                     norm.x->row_labels,
                     rms ? std::vector<std::string>{"σ"} : std::vector<std::string>{"μ", "σ"},
                     zero_table(norm.x->values.rows, rms ? 1 : 2)};
  for (int64_t r = 0; r < step.values.rows; r++) {
    if (!rms) step.values.at(r, 0) = norm.mean[to_size(r)];
    step.values.at(r, rms ? 0 : 1) = 1 / norm.rstd[to_size(r)];
  }
  step.origin = {StepKind::statistics, {norm.x->id}};
  step.origin.number = norm.place.epsilon;
  step.origin.flag = rms;
  return to.add(std::move(step));
}

}  // namespace

NormSteps explain_norm(const NormPlace& place, const ExplainedStep& x, StepRecorder& to) {
  const NumberTable &R = x.values, &gamma = place.input->gamma, &beta = place.input->beta;
  const bool rms = place.kind == NormKind::rms;
  NormSteps norm{place, &x};
  norm.mean.resize(rms ? 0 : to_size(R.rows));
  norm.rstd.resize(to_size(R.rows));
  NumberTable N = zero_table(R.rows, R.columns);
  layer_norm<double>(matrix_of(R), gamma.values.data(), rms ? nullptr : beta.values.data(), place.epsilon, matrix_of(N),
                     rms ? nullptr : norm.mean.data(), norm.rstd.data());
  const std::string suffix = "_" + place.number;
  norm.gamma = &to.given("gamma" + suffix, "γ" + suffix, {}, gamma, {place.object, place.gamma});
  const ExplainedStep* shift =
      rms ? nullptr : &to.given("beta" + suffix, "β" + suffix, {}, beta, {place.object, place.beta});
  norm.statistics = &add_statistics(to, norm);
  ExplainedStep step{
      "norm" + suffix, "N" + suffix, fmt::format("γ{} ∘ {}{}", suffix, normalized(norm), rms ? "" : " + β" + suffix),
      x.row_labels,    {},           std::move(N)};
  step.origin = {StepKind::norm, {x.id, norm.statistics->id, norm.gamma->id}};
  if (shift) step.origin.of.push_back(shift->id);
  norm.N = &to.add(std::move(step));
  return norm;
}

const ExplainedStep& explain_norm_backward(const NormSteps& steps, const ExplainedStep& dN, const std::string& id,
                                           const std::string& name, StepRecorder& to) {
  const bool rms = steps.place.kind == NormKind::rms;
  const NumberTable& d = dN.values;
  NumberTable dx = zero_table(d.rows, d.columns), dgamma = zero_table(1, d.columns), dbeta = dgamma;
  Arena scratch(1 << 20);
  layer_norm_backward<double>(matrix_of(d), matrix_of(steps.x->values), steps.gamma->values.values.data(),
                              rms ? nullptr : steps.mean.data(), steps.rstd.data(), matrix_of(dx), dgamma.values.data(),
                              rms ? nullptr : dbeta.values.data(), scratch);
  const std::string suffix = "_" + steps.place.number, C = normalized(steps);
  ExplainedStep gain{"dgamma" + suffix, "dγ" + suffix, fmt::format("Σᵢ {} ∘ {}", dN.name, C), {}, {}, dgamma};
  gain.origin = {StepKind::gain_gradient, {dN.id, steps.x->id, steps.statistics->id}};
  to.add(std::move(gain));
  if (!rms) to.column_sums("dbeta" + suffix, "dβ" + suffix, dN);
  ExplainedStep rows{id,
                     name,
                     fmt::format("(D −{} C mean(D ∘ C)) / σ, D = γ{} ∘ {}, C = {}, means of each row",
                                 rms ? "" : " mean(D) −", suffix, dN.name, C),
                     steps.x->row_labels,
                     {},
                     dx};
  rows.origin = {StepKind::norm_gradient, {dN.id, steps.x->id, steps.statistics->id, steps.gamma->id}};
  rows.origin.flag = rms;
  return to.add(std::move(rows));
}

}  // namespace qkv
