// All attention weights of a model while it reads a source and says a target, or of a decoder-only model while it reads
// a text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "qkv/attention_map.h"

namespace qkv {

struct AttendRequest {
  std::vector<int32_t> source_ids;   // the end token included; of a decoder-only model none
  std::vector<int32_t> target_ids;   // without start and end; of a decoder-only model the text
  std::optional<int32_t> start = 1;  // none where the text begins without one
  int32_t end = 2;
};

// Gives the pieces of ids, for the axes.
using PiecesOf = std::function<std::vector<std::string>(std::span<const int32_t> ids, bool of_source)>;

// Weights recomputed from the queries, keys and log-sum-exp of one forward pass, so they are what the kernel used.
AttentionMap attention_map(const Transformer<float>& model, const AttendRequest& request, Arena& arena,
                           const PiecesOf& pieces);

}  // namespace qkv
