// The change of BLEU of a translator's greedy translations when a part of the model is removed. The weights are changed
// so that the part gives zeros or its mean: columns of W_O, and its bias.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/heads/bootstrap.h"
#include "analysis/heads/head_ablation.h"

namespace qkv {

// Throws Error for a model whose weights cannot be changed so: layers share them, or there is no bias for the means.
void check_removable(const std::string& run, const Transformer<float>& model, std::span<const RemovedPart> parts,
                     Replacement replace_by);

// Changes the weights of a model, which check_removable accepts, as if the part were replaced by its values, or by
// zeros if it has none.
void remove_part(Transformer<float>& model, const RemovedPart& part);

// The BLEU of the whole model, and the change of it without each part.
struct BleuAblation {
  double whole = 0;
  std::vector<Change> without = {};
};

// Translates the sources of `texts`, in batches, once for the whole model and once without each part. The references
// are the targets as they were read. The options name the languages; other options of the search are the run's
// defaults, except for the beam.
BleuAblation ablate_bleu(const std::string& run, const HeadTexts& texts, const HeadsOptions& options,
                         std::span<const std::vector<size_t>> batches, Arena& arena, std::span<const RemovedPart> parts,
                         const Bootstrap& bootstrap);

}  // namespace qkv
