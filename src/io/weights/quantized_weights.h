// Weights in 4 and 8 bits in a safetensors file. docs/run-directory.md describes the format.
#pragma once

#include <memory>
#include <string>

#include "io/weights/safetensors.h"
#include "model/layers/parameter.h"

namespace qkv {

// Quantizes every matrix that may have 8 bits, or, with bits 4, as many as possible to 4 bits and the others to 8.
// Requires bits 4 or 8.
void quantize(ParameterList<float>& list, int bits = 8);

// Writes the parameters, quantized ones as they are.
void save_quantized(const std::string& path, const ParameterList<float>& list);

// Makes the list use all quantized matrices of the file. Throws Error, naming file and tensor, if one is invalid.
void use_quantized(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list);

int64_t count_int8(const ParameterList<float>& list);  // number of 8-bit matrices
int64_t count_int4(const ParameterList<float>& list);
bool is_quantized(const ParameterList<float>& list);     // whether any matrix is
int64_t weight_bytes(const Parameter<float>& p);         // in memory, of the form that is used
int64_t weight_bytes(const ParameterList<float>& list);  // of all parameters

}  // namespace qkv
