// The head of a classifier: z = Norm(φ(v W_1ᵀ + b_1)) W_2ᵀ + b_2.
#pragma once

#include <cstdint>
#include <optional>

#include "model/heads/standalone_head.h"
#include "model/layers/context.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/parameter.h"
#include "qkv/classifier.h"
#include "qkv/config.h"
#include "qkv/text_head.h"

namespace qkv {

LabelHeadShape label_head_shape(const ClassificationConfig& config);

template <class Real>
class ClassificationHead {
 public:
  struct Saved {
    Matrix<const Real> v;  // [N, d]: the input, after dropout
    Matrix<Real> a, y;     // [N, d]: before the activation; the input of the output layer, after dropout
    typename Norm<Real>::Saved norm;
  };

  // Declares the parameters: head.dense.*, head.norm.* and head.output.*. `model` has the width d of v and the kind of
  // the norm. In training, values of v and of the inputs of the output layer are dropped with probability `dropout`.
  ClassificationHead(ParameterList<Real>& list, const ModelConfig& model, const LabelHeadShape& shape,
                     double dropout = 0, DropoutSites sites = {});

  int64_t out() const { return output_.out(); }

  // v: [N, d], pooled hidden states, -> logits: [N, labels], from the arena. A row does not depend on the others.
  // Overwrites v if there is dropout.
  Matrix<Real> forward(Matrix<Real> v, Context& c, Saved& s) const;
  // dz: [N, labels]. Returns dv: [N, d], from the arena, and adds to the gradients of the parameters.
  Matrix<Real> backward(Matrix<const Real> dz, Context& c, const Saved& s) const;

 private:
  DenseActivation activation_;
  double dropout_;
  uint32_t input_site_, output_site_;
  Linear<Real> dense_;
  std::optional<Norm<Real>> norm_;
  Linear<Real> output_;
};

using StandaloneLabelHead = StandaloneHead<ClassificationHead<float>>;

// Returns the number of parameters of a head without allocating it.
int64_t count_parameters(const ModelConfig& model, const LabelHeadShape& shape);

extern template class ClassificationHead<float>;
extern template class ClassificationHead<double>;

}  // namespace qkv
