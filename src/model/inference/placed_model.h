// Creates inference engines on the host or on a device.
#pragma once

#include <memory>
#include <string>

#include "model/inference/inference_engine.h"
#include "model/transformer.h"
#include "qkv/placement.h"

namespace qkv {

// Returns an engine that computes at a place. The model must outlive it. On a device it has a copy of the weights.
// Throws Error, beginning with the directory of the run, if there is no device, for a precision that the place does not
// have, and for weights of 8 or 4 bits on a device.
std::shared_ptr<const InferenceEngine> make_inference(const Transformer<float>& model, const Placement& placement,
                                                      const std::string& run);

}  // namespace qkv
