// Weights in 4 and 8 bits in a safetensors file. docs/run-directory.md describes the format.
//
// 4 bits: the matrix NAME is U8, [out / 16, in / 64, 576]: the blocks of core/quantized_matrix.h. Only matrices of
// linear layers have 4 bits, if out is a multiple of 16 and in of 64. Layers that are computed together, such as
// queries, keys and values, have them together or not at all.
//
// 8 bits: the matrix NAME is I8, [out, in]; NAME_scale is F32, [out]; row o of the weight is its integers times scale
// o. Matrices whose number of columns is not a multiple of 4 or is above 65,536 stay F32, as do all vectors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/weights/safetensors.h"
#include "model/layers/parameter.h"

namespace qkv {

std::vector<int64_t> int4_shape(const Parameter<float>& p);  // of its tensor
bool is_int4(const Safetensors& file, const Parameter<float>& p);

// Makes the list use all 4-bit matrices of the file, without a copy if each begins where the previous one ends. Throws
// Error, naming file and tensor, for a wrong shape, a scale that is not finite, and for a matrix of a joined layer that
// has 4 bits where another one has not.
void use_int4(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list);

// Quantizes every matrix that may have 4 bits and is not quantized.
void quantize_int4(ParameterList<float>& list);

std::string int8_scale(const std::string& name);  // name of the scale of a weight
bool is_int8(const Safetensors& file, const Parameter<float>& p);

// Makes the list use all 8-bit matrices of the file, without a copy if each begins where the previous one ends. Throws
// Error, naming file and tensor, for a wrong shape, a scale that is missing or not finite, and for an F32 matrix among
// 8-bit ones. Must be called after use_int4().
void use_int8(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list);

// Quantizes every matrix that may have 8 bits and is not quantized. The scale of a row is its largest absolute value
// / 127.
void quantize_int8(ParameterList<float>& list);

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
