// The architectures of GGUF that are imported. Each is described by how its metadata and tensors become those of a
// model class of transformers, which src/convert/architectures describes. Adding one is adding a value to the table.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "convert/formats/foreign_tensors.h"
#include "convert/formats/gguf_file.h"

namespace qkv {

// A field of config.json and the metadata that holds it, "ARCHITECTURE.KEY".
struct GgufField {
  const char *field, *key;
  bool required = true;
};

// A module of transformers, and its name in GGUF. "#" stands for the number of the layer.
struct GgufModule {
  const char *theirs, *gguf;
};

struct GgufArchitecture {
  const char* name;        // general.architecture
  const char* model_type;  // of transformers
  std::vector<GgufField> fields;
  std::vector<GgufModule> modules;
  // Whether llama.cpp rotates neighbouring components of a head, so that the rows of queries and keys alternate between
  // the halves of each head as transformers has them.
  bool interleaved = false;
  // Whether the weights of norms are stored with the 1 that the model class adds to them.
  bool whole_norms = false;
  // The field for the share of each head that rotary positions turn; null if they turn all of it.
  const char* rotary_share = nullptr;
  // Sets what only some tensors or metadata show; may be null.
  void (*finish)(nlohmann::json& config, const GgufMetadata& metadata, const ForeignTensors& tensors) = nullptr;
};

std::span<const GgufArchitecture> gguf_architectures();

}  // namespace qkv
