// Checks of the arguments of attention. Only the memory behind a pointer cannot be checked.
#pragma once

#include "ops/attention_view.h"

namespace qkv {

// Throws Error for options that are invalid: numbers of heads, widths, sequences, limits, probabilities, scales.
template <class Real>
void check_attention(const AttentionOptions<Real>& in);

// Also checks the arrays that forward and backward read and write: results must not overlap in themselves.
template <class T>
void check_forward(const AttentionInput<T>& in, Heads<T> out, Heads<Arithmetic<T>> lse);
template <class T>
void check_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const Arithmetic<T>> lse,
                    Heads<const T> dout, const AttentionGradients<T>& gradients);
template <class T>
void check_weights(const AttentionInput<T>& in, Heads<const Arithmetic<T>> lse, const AttentionRows& rows,
                   const Arithmetic<T>* A, int64_t stride);

}  // namespace qkv
