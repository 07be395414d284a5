// Weights in 8 bits in a safetensors file: a matrix of the model's name is I8, [out, in], and beside it stands
// NAME_scale, F32, [out]: row o of the weight is its integers times scale o. All matrices of products and of embeddings
// are so, but for those whose columns are no multiple of 4, or above 65,536; these and what is no matrix stay F32.
#pragma once

#include <memory>
#include <string>

#include "io/safetensors.h"
#include "layers/parameter.h"

namespace qkv {

std::string int8_scale(const std::string& name);  // name of the scale beside a weight
bool is_int8(const Safetensors& file, const Parameter<float>& p);

// Makes the list use all matrices that the file has in 8 bits, where they lie if each begins where the one before ends.
// Throws Error, naming file and tensor, for a wrong shape, a scale that is missing or not finite, and for a matrix that
// is F32 where another is not.
void use_int8(const std::string& path, const std::shared_ptr<const Safetensors>& file, ParameterList<float>& list);

int64_t count_int8(const ParameterList<float>& list);    // matrices that it uses in 8 bits
int64_t weight_bytes(const Parameter<float>& p);         // of what is used of it, in memory
int64_t weight_bytes(const ParameterList<float>& list);  // of all of them

// Makes the list use 8 bits for every matrix that may have them; a row's scale is its largest absolute value / 127.
void quantize(ParameterList<float>& list);

// Writes the parameters, those that are used in 8 bits as such.
void save_int8(const std::string& path, const ParameterList<float>& list);

}  // namespace qkv
