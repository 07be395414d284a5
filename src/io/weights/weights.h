// The parameters of a model in a safetensors file, by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "model/transformer.h"

namespace qkv {

// Writes `values`, which have the layout of `list` and may be an average of weights.
void save_weights(const std::string& path, const ParameterList<float>& list, std::span<const float> values);
// Writes parameters [begin, end) of the list alone. metadata: that the file also has.
void save_weights(const std::string& path, const ParameterList<float>& list, std::span<const float> values,
                  int64_t begin, int64_t end, const std::map<std::string, std::string>& metadata = {});

// Reads every parameter of `list` into `values`. Throws Error, naming file and tensor, for a tensor that is missing,
// unknown, not finite, or of another shape or type.
void load_weights(const std::string& path, const ParameterList<float>& list, std::span<float> values);
// Reads parameters [begin, end) of the list from a file of these alone.
void load_weights(const std::string& path, const ParameterList<float>& list, std::span<float> values, int64_t begin,
                  int64_t end);

// Loads a model for inference, with float32 or quantized weights (io/weights/quantized_weights.h). Weights that lie in
// the order of the model are used directly from the mapped file. The size of the file is checked against the
// configuration before memory is allocated.
std::unique_ptr<Transformer<float>> load_model(const std::string& path, const ModelConfig& config,
                                               const ItemInputs& items = {});

// Reads the mean of several weight files, computed in double. The arena holds the sums of one parameter at a time.
void average_weights(std::span<const std::string> paths, const ParameterList<float>& list, std::span<float> values,
                     Arena& arena);

}  // namespace qkv
