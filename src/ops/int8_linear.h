// Linear layers whose products run in 8 bits, for training: Y = X Wᵀ + b, dX = dY W and dW = dYᵀ X. Each operand is
// quantized when a product starts. All of X, W, Y and the gradients are in float32. A row or column of an operand has
// one scale for each block of at most 512 numbers along the sum: max |x| / 127, as in Jetfire (Xi et al., 2024).
#pragma once

#include "ops/linear.h"

namespace qkv {

// The same as linear().
void int8_linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y, Arena& scratch,
                 const Epilogue<float>& epilogue = {});

// The same as linear_backward(). db is summed up in float32.
void int8_linear_backward(Matrix<const float> X, Matrix<const float> W, Matrix<const float> dY,
                          const LinearGradients<float>& gradients, Arena& scratch);

}  // namespace qkv
