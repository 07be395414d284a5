// model.safetensors with the tensor names of a class of transformers.
#pragma once

#include <string>

#include "export/model_class.h"
#include "model/transformer.h"
#include "qkv/export.h"

namespace qkv {

// Writes the tensors, with one of them in memory at a time, and returns how many numbers were written. Throws Error,
// naming the parameter, for a number that is too large for the type.
int64_t write_tensors(const std::string& path, const Transformer<float>& model, const ModelClass& model_class,
                      ExportType type);

}  // namespace qkv
