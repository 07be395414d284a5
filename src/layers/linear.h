// y = x Wᵀ + b with its parameters.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "layers/context.h"
#include "layers/parameter.h"
#include "ops/linear/linear.h"

namespace qkv {

// One linear map, or several of the same input side by side: {{"q", 64}, {"k", 64}, {"v", 64}} declares q.weight,
// k.weight, v.weight, q.bias, … as neighbours, so that one product computes all three.
template <class Real>
class Linear {
 public:
  using Parts = std::vector<std::pair<std::string, int64_t>>;  // names and output widths

  Linear(ParameterList<Real>& list, const Parts& parts, int64_t in, bool bias);

  // x: [N, in] -> [N, out] taken from the arena. `out_begin`, `out_end` choose a range of outputs; all by default.
  Matrix<Real> forward(Matrix<const Real> x, Context& c) const { return forward(x, c, 0, out_); }
  void forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, AfterBlock after) const {
    forward_into(x, y, c, 0, out_, after);
  }
  Matrix<Real> forward(Matrix<const Real> x, Context& c, int64_t out_begin, int64_t out_end) const;
  void forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, int64_t out_begin, int64_t out_end,
                    AfterBlock after = {}) const;

  // Gradients of the parameters are added to; dx: [N, in] is assigned, or added to when `accumulate`.
  void backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, Context& c, bool accumulate = false,
                AfterBlock after_dx = {}) const {
    backward(x, dy, dx, c, accumulate, 0, out_, after_dx);
  }
  void backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, Context& c, bool accumulate,
                int64_t out_begin, int64_t out_end, AfterBlock after_dx = {}) const;

  int64_t out() const { return out_; }

 private:
  int64_t in_, out_ = 0;
  const Parameter<Real>* weight_ = nullptr;  // [out, in], the first of the parts
  const Parameter<Real>* bias_ = nullptr;    // [out], or null
};

// y = x Wᵀ + b for rows [begin, end) of the weight and of those that follow it, by the op that the context asks for;
// the bias is of the first of these rows, or null.
template <class Real>
void product(Matrix<const Real> x, const Parameter<Real>& weight, int64_t begin, int64_t end, const Real* bias,
             Matrix<Real> y, Context& c, AfterBlock after = {});

extern template class Linear<float>;
extern template class Linear<double>;

}  // namespace qkv
