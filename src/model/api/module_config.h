// Checks of the sizes of a module.
#pragma once

#include <cstdint>

#include "qkv/config.h"

namespace qkv::layers {

// Returns the size. Throws Error, naming module and argument, unless it is from 1 to 2^24.
int64_t checked_size(const char* module, const char* argument, int64_t size);

// Returns the configuration with vocabularies and embeddings that no module reads set to valid values. Throws Error,
// naming the field, for values that no layer can have.
ModelConfig checked_config(ModelConfig config);

}  // namespace qkv::layers
