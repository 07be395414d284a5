// The parameters of a model as a safetensors file, by name.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "model/transformer.h"

namespace qkv {

// `values` has the layout of `list` and may be an average of weights.
void save_weights(const std::string& path, const ParameterList<float>& list, std::span<const float> values);

// Reads every parameter of `list` into `values`. Throws Error, naming file and tensor: one that is missing, unknown, of
// another shape or type, or not finite.
void load_weights(const std::string& path, const ParameterList<float>& list, std::span<float> values);

// A model of this configuration with the weights of a file, float32 or 8 bits (io/int8_weights.h), for inference: they
// are used where the mapped file has them, as long as they lie in the order of the model. The file's size is held
// against the configuration before memory is taken.
std::unique_ptr<Transformer<float>> load_model(const std::string& path, const ModelConfig& config);

// The mean of several weight files, computed in double; the numbers of one parameter come from the arena.
void average_weights(std::span<const std::string> paths, const ParameterList<float>& list, std::span<float> values,
                     Arena& arena);

}  // namespace qkv
