// 8-bit weights in a safetensors file. The matrix NAME is I8, [out, in]; NAME_scale is F32, [out]; row o of the weight
// is its integers times scale o. Matrices whose number of columns is not a multiple of 4 or is above 65,536 stay F32,
// as do all vectors.
#pragma once

#include <memory>
#include <string>

#include "io/weights/safetensors.h"
#include "model/layers/parameter.h"

namespace qkv {

std::string int8_scale(const std::string& name);  // name of the scale of a weight
bool is_int8(const Safetensors& file, const Parameter<float>& p);

// Makes the list use all 8-bit matrices of the file, without a copy if each begins where the previous one ends. Throws
// Error, naming file and tensor, for a wrong shape, a scale that is missing or not finite, and for an F32 matrix among
// 8-bit ones. Must be called after use_int4().
void use_int8(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list);

// Quantizes every matrix that may have 8 bits and is not quantized. The scale of a row is its largest absolute value
// / 127.
void quantize_int8(ParameterList<float>& list);

}  // namespace qkv
