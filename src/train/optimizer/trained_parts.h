// The parts of a model that training changes: all parameters, all but those that are frozen, or adapters (LoRA).
#pragma once

#include <string>
#include <vector>

#include "io/runs/adapter.h"
#include "model/transformer.h"
#include "qkv/training.h"

namespace qkv {

// Freezes the parameters that config.freeze selects. Throws Error for a pattern that selects none, and if none is left.
void freeze(const TrainingConfig& config, ParameterList<float>& parameters);

// Throws Error as freeze() would.
void check_freeze(const Recipe& recipe);

// Throws Error for values of fine-tuning that contradict each other. `init`: the run that training starts from, or "".
void check_fine_tuning(const TrainingConfig& config, const std::string& init);

// Returns the adapter of a new run: a module for each linear layer of the recipe's model that lora_targets selects,
// with the name that it has in the class of transformers that the model would be exported as, or its name here if there
// is no such class. `base` is the run that the adapter changes. Throws Error for a pattern that selects none, and for
// one that selects a part of what the class has in one module.
Adapter make_adapter(const Recipe& recipe, const std::string& base);

}  // namespace qkv
