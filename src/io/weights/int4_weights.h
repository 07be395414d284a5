// 4-bit weights in a safetensors file. The matrix NAME is U8, [out / 16, in / 64, 576]: the blocks of
// core/int4_matrix.h. Only matrices of linear layers have 4 bits, if out is a multiple of 16 and in of 64. Layers that
// are computed together, such as queries, keys and values, have them together or not at all.
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

}  // namespace qkv
