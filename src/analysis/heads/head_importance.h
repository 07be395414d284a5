// The importance of heads by gradients: with a factor ξ = 1 on the output o of a head at one token, the derivative of
// the loss L of the data is
//   ∂L/∂ξ = Σ_e o_e ∂L/∂o_e,
// and the importance is the mean of its magnitude over the tokens. Michel et al., "Are Sixteen Heads Really Better than
// One?" (2019), where the magnitude is that of a whole text.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "analysis/heads/head_ablation.h"
#include "model/layers/probe.h"

namespace qkv {

// Collects the derivatives of one pass forward and backward.
class ImportanceProbe : public SublayerProbe {
 public:
  explicit ImportanceProbe(int64_t heads) : heads_(heads) {}

  void output(std::string_view op, Pass pass, Matrix<float> m, int64_t) override { see(op, pass, m); }
  void output(std::string_view op, Pass pass, Matrix<double> m, int64_t) override { see(op, pass, m); }
  using Probe::output;

  // Returns the derivatives of the last pass, [tokens, H], row-major.
  const std::vector<double>& derivatives(const SublayerPlace& place) const { return derivatives_.at(place); }

 private:
  template <class Real>
  void see(std::string_view op, Pass pass, Matrix<Real> m);

  int64_t heads_;
  std::map<SublayerPlace, std::vector<double>> outputs_ = {}, derivatives_ = {};
};

// Returns the importance of each head of all_heads(config).
std::vector<double> head_importance(HeadTexts& texts, std::span<const std::vector<size_t>> batches, Arena& arena);

}  // namespace qkv
