// The steps of layer normalization and RMSNorm.
#pragma once

#include <string>
#include <vector>

#include "program/explain/recorder.h"

namespace qkv {

// A norm in an explanation.
struct NormPlace {
  const ExplainedNorm* input = nullptr;
  NormKind kind = NormKind::layer;  // or rms
  double epsilon = 1e-5;
  std::string number;                 // of its symbols
  std::string gamma = {}, beta = {};  // names of its members
  std::string object = {};            // the member with these
};

// Its results that the backward pass needs, with rstd = 1 / σ.
struct NormSteps {
  NormPlace place;
  const ExplainedStep *x = nullptr, *gamma = nullptr, *statistics = nullptr, *N = nullptr;
  std::vector<double> mean = {}, rstd = {};  // of each row; no mean with RMSNorm
};

NormSteps explain_norm(const NormPlace& place, const ExplainedStep& x, StepRecorder& to);
// Adds the gradients of gain and shift, and returns that of the rows, of this id and name.
const ExplainedStep& explain_norm_backward(const NormSteps& steps, const ExplainedStep& dN, const std::string& id,
                                           const std::string& name, StepRecorder& to);

}  // namespace qkv
