// The change of the loss of texts when a part of the model is removed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/heads/attention_pass.h"
#include "analysis/heads/text_losses.h"
#include "analysis/sublayer_probe.h"
#include "qkv/heads.h"

namespace qkv {

// Returns the place of the sublayer of an attention.
SublayerPlace sublayer_of(const HeadPlace& head);

// A part to remove: columns of the heads side by side, before W_O, or all that a sublayer adds.
struct RemovedPart {
  SublayerPlace place;
  bool is_branch = false;          // all that the sublayer adds; otherwise columns of the heads
  int64_t begin = 0, end = 0;      // columns
  std::vector<float> values = {};  // in their place, one for each column; empty means zeros
  int64_t head = -1;               // −1: all
};

// Replaces the output of a part in forward passes.
class RemovingProbe : public SublayerProbe {
 public:
  explicit RemovingProbe(const RemovedPart& part) : part_(part) {}
  void output(std::string_view op, Pass pass, Matrix<float> m, int64_t first) override;
  using Probe::output;

 private:
  const RemovedPart& part_;
};

// Returns the parts that an ablation removes, in the order of the model.
std::vector<RemovedPart> parts_of(const ModelConfig& config, Ablation ablation);

// Sets the values of the parts to the means of their outputs over all texts.
void set_means(const HeadTexts& texts, std::span<const std::vector<size_t>> batches, Arena& arena,
               std::vector<RemovedPart>& parts);

// The losses of each text, by its number: of the whole model and, for each part, without it.
struct AblationLosses {
  std::vector<TextLoss> whole;
  std::vector<std::vector<TextLoss>> without;
};

// Computes losses. Layers before a removed part are computed once.
AblationLosses ablate(const HeadTexts& texts, std::span<const std::vector<size_t>> batches, Arena& arena,
                      const std::vector<RemovedPart>& parts);

}  // namespace qkv
