// 8-bit weights in a safetensors file. The matrix NAME is I8, [out, in]; NAME_scale is F32, [out]; row o of the weight
// is its integers times scale o. All weight matrices and embedding tables have 8 bits, except those whose number of
// columns is not a multiple of 4 or is above 65,536. These and all vectors stay F32.
#pragma once

#include <memory>
#include <string>

#include "io/safetensors.h"
#include "layers/parameter.h"

namespace qkv {

std::string int8_scale(const std::string& name);  // name of the scale of a weight
bool is_int8(const Safetensors& file, const Parameter<float>& p);

// Makes the list use all 8-bit matrices of the file, without a copy if each begins where the previous one ends. Throws
// Error, naming file and tensor, for a wrong shape, a scale that is missing or not finite, and for an F32 matrix among
// 8-bit ones.
void use_int8(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list);

int64_t count_int8(const ParameterList<float>& list);    // number of 8-bit matrices
int64_t weight_bytes(const Parameter<float>& p);         // in memory, of the form that is used
int64_t weight_bytes(const ParameterList<float>& list);  // of all parameters

// Quantizes every matrix that may have 8 bits. The scale of a row is its largest absolute value / 127.
void quantize(ParameterList<float>& list);

// Writes the parameters, quantized ones in 8 bits.
void save_int8(const std::string& path, const ParameterList<float>& list);

}  // namespace qkv
