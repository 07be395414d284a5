// model.safetensors by the names of a class of transformers.
#pragma once

#include <string>

#include "export/family.h"
#include "model/transformer.h"
#include "qkv/export.h"

namespace qkv {

// Writes the tensors, one in memory at a time, and returns how many numbers they are. Throws Error, naming the
// parameter, for a number that is too large for the type.
int64_t write_tensors(const std::string& path, const Transformer<float>& model, const Family& family, ExportType type);

}  // namespace qkv
