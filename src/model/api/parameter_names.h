// The names of the parameters of a module: those of a run directory, and those of PyTorch's module of the same kind.
#pragma once

#include <string>
#include <vector>

#include "model/layers/parameter.h"
#include "qkv/layers.h"

namespace qkv::layers {

// Returns the values of the parameters, or with `gradients` their gradients.
template <class Real>
std::vector<NamedArray<Real>> named_arrays(const ParameterList<Real>& list, Names names, bool gradients);

}  // namespace qkv::layers
