// A model at the place where it is to compute.
#pragma once

#include <memory>

#include "model/inference/inference_engine.h"
#include "model/transformer.h"
#include "qkv/placement.h"

namespace qkv {

// Returns an engine that computes at a place. The model must outlive it. On a device it has a copy of the weights.
// Throws Error if there is no device, for a precision that the place does not have, and for weights of 8 or 4 bits on a
// device.
std::shared_ptr<const InferenceEngine> make_inference(const Transformer<float>& model, const Placement& placement);

}  // namespace qkv
