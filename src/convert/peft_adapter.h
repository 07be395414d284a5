// A LoRA adapter as PEFT writes it: adapter_config.json and adapter_model.safetensors, with two matrices
// base_model.model.MODULE.lora_A.weight: [r, in] and base_model.model.MODULE.lora_B.weight: [out, r] for each module.
// The weight of a module becomes W + s B A, with s = lora_alpha / r, or lora_alpha / √r with use_rslora.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "convert/formats/foreign_tensors.h"

namespace qkv {

class PeftAdapter {
 public:
  // Reads the adapter of a directory for a model with these parameters. Throws Error, naming file and field or tensor,
  // for an adapter with features other than these matrices, and for one that does not fit the model.
  PeftAdapter(const std::string& directory, const Origins& model);

  // Adds the update to rows [begin, end) of a parameter, if it has one. Throws Error if a sum is not finite.
  void add(const std::string& parameter, int64_t begin, int64_t end, std::span<float> rows) const;

 private:
  struct Update {
    std::vector<float> A, B;  // [r, in], [out, r]
    int64_t rank = 0, in = 0, out = 0;
    double scale = 1;
  };
  struct Place {
    const Update* update;
    RowPlaces rows;  // of B
  };

  std::string path_;                       // of the matrices
  std::map<std::string, Update> updates_;  // by module
  std::map<std::string, Place> places_;    // by parameter
};

}  // namespace qkv
