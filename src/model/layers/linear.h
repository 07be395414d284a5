// A linear layer, y = x Wᵀ + b, with its parameters.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/device.h"
#include "model/layers/context.h"
#include "model/layers/parameter.h"
#include "ops/epilogue.h"

namespace qkv {

using LinearOutputs = std::vector<std::pair<std::string, int64_t>>;  // names and output widths

// One linear map, or several of the same input: {{"q", 64}, {"k", 64}, {"v", 64}} declares q.weight, k.weight,
// v.weight, q.bias, … next to each other, so that one product computes all three. Low-rank updates of the first weight
// (Parameter::updates) are added to the product.
template <class Real>
class Linear {
 public:
  Linear(ParameterList<Real>& list, const LinearOutputs& outputs, int64_t in, bool bias);

  // x: [N, in] -> [N, out], from the arena. [out_begin, out_end) selects a range of outputs; the default is all.
  Matrix<Real> forward(Matrix<const Real> x, Context& c) const { return forward(x, c, 0, out_); }
  void forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, const Epilogue<Real>& epilogue) const {
    forward_into(x, y, c, 0, out_, epilogue);
  }
  Matrix<Real> forward(Matrix<const Real> x, Context& c, int64_t out_begin, int64_t out_end) const;
  void forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, int64_t out_begin, int64_t out_end,
                    const Epilogue<Real>& epilogue = {}) const;

  // Adds to the gradients of the parameters. Assigns dx: [N, in], or adds to it if `accumulate`.
  void backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, Context& c, bool accumulate = false,
                const Epilogue<Real>& of_dx = {}) const {
    backward(x, dy, dx, c, accumulate, 0, out_, of_dx);
  }
  void backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, Context& c, bool accumulate,
                int64_t out_begin, int64_t out_end, const Epilogue<Real>& of_dx = {}) const;

  int64_t out() const { return out_; }

 private:
  int64_t out_ = 0;
  const Parameter<Real>* weight_ = nullptr;  // [out, in], of the first output
  const Parameter<Real>* bias_ = nullptr;    // [out], or null
};

// Computes y = x Wᵀ + b for rows [begin, end) of the weight, which may extend into the weights that follow it. `bias`
// points to the element of row `begin`, or is null. The context selects the op: training in float32 or in
// 8 bits, inference, or quantized weights.
template <class Real>
void product(Matrix<const Real> x, const Parameter<Real>& weight, int64_t begin, int64_t end, const Real* bias,
             Matrix<Real> y, Context& c, const Epilogue<Real>& epilogue = {});

// Computes the gradients of product().
template <class Real>
void product_backward(Matrix<const Real> x, const Parameter<Real>& weight, int64_t begin, int64_t end,
                      Matrix<const Real> dy, Matrix<Real> dx, Statistic<Real>* db, Context& c, bool accumulate = false,
                      const Epilogue<Real>& of_dx = {});

QKV_FOR_ELEMENTS(extern template class Linear);

}  // namespace qkv
