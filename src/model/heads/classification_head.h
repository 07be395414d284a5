// The head of a classifier, in inference: z = Norm(φ(v W_1ᵀ + b_1)) W_2ᵀ + b_2.
#pragma once

#include <cstdint>
#include <optional>

#include "model/layers/context.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/parameter.h"
#include "qkv/classifier.h"
#include "qkv/config.h"

namespace qkv {

class ClassificationHead {
 public:
  // Declares and allocates the parameters, all zero. `model` has the width d of v and the kind of the norm.
  ClassificationHead(const ModelConfig& model, const ClassificationConfig& config);
  ClassificationHead(const ClassificationHead&) = delete;
  ClassificationHead& operator=(const ClassificationHead&) = delete;

  ParameterList<float>& parameters() { return parameters_; }
  const ParameterList<float>& parameters() const { return parameters_; }

  // v: [N, d], pooled hidden states, -> logits: [N, labels], from the arena. A row does not depend on the others.
  Matrix<float> forward(Matrix<const float> v, Context& c) const;

 private:
  ParameterList<float> parameters_;
  HeadActivation activation_;
  Linear<float> dense_;
  std::optional<Norm<float>> norm_;
  Linear<float> output_;
};

// Returns the number of parameters of a head without allocating it.
int64_t count_parameters(const ModelConfig& model, const ClassificationConfig& config);

}  // namespace qkv
