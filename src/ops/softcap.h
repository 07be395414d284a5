// Softcap: logits z become c tanh(z / c), which lies between −c and c. Gemma Team, "Gemma 2: Improving Open Language
// Models at a Practical Size" (2024), section 2.
#pragma once

#include "qkv/bfloat16.h"
#include "qkv/matrix.h"

namespace qkv {

// Both require cap > 0.
// y = cap tanh(z / cap), in place: z: [N, V] becomes y. On the calling thread.
template <class Real>
void softcap(Matrix<Real> z, Arithmetic<Real> cap);
// dz = dy (1 − (y / cap)²), in place: d: [N, V] is dy and becomes dz. y: [N, V], the result of softcap. On all threads.
template <class Real>
void softcap_backward(Matrix<const Real> y, Arithmetic<Real> cap, Matrix<Real> d);

}  // namespace qkv
