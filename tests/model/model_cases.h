// Models that together cover every option of a ModelConfig, and a batch for each.
#pragma once

#include <string>
#include <vector>

#include "model/transformer.h"
#include "tests/support/models.h"

namespace qkv::testing {

constexpr double kSmoothing = 0.1;  // of labels, in the losses

// Three pairs of different lengths.
Batch sample_batch(const ModelConfig& config, const ItemInputs& items = {});

struct Case {
  std::string name;
  ModelConfig config;
  ItemInputs items = {};
};

std::vector<Case> cases();

}  // namespace qkv::testing
