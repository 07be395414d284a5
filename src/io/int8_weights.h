// Weights in 8 bits in a safetensors file: a matrix of the model's name is I8, [out, in], and beside it stands
// NAME_scale, F32, [out]: row o of the weight is its integers times scale o. What is no matrix of a product or of
// embeddings stays F32.
#pragma once

#include <memory>
#include <string>

#include "io/safetensors.h"
#include "layers/parameter.h"

namespace qkv {

std::string int8_scale(const std::string& name);  // name of the scale beside a weight
bool is_int8(const Safetensors& file, const Parameter<float>& p);

// Makes the list use all matrices that the file has in 8 bits, where they lie if each begins where the one before ends.
// Throws Error, naming file and tensor, for a wrong shape, a scale that is missing or not finite.
void use_int8(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list);

// Makes the list use 8 bits for every matrix of a product or of embeddings whose columns are a multiple of 4; a row's
// scale is its largest absolute value / 127.
void quantize(ParameterList<float>& list);

// Writes the parameters, those that are used in 8 bits as such.
void save_int8(const std::string& path, const ParameterList<float>& list);

}  // namespace qkv
