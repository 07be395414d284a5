// A forward pass over a batch, and the attention weights of all its heads.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/heads/head_texts.h"
#include "core/arena.h"
#include "core/function_ref.h"
#include "model/transformer.h"

namespace qkv {

enum class AttentionPart { encoder, decoder, cross };

// Returns "encoder", "decoder" or "cross".
std::string_view name_of(AttentionPart part);

struct HeadPlace {
  AttentionPart part = AttentionPart::encoder;
  int64_t layer = 0, head = 0;  // from 0

  bool operator==(const HeadPlace&) const = default;
};

// Returns all heads of a model: encoder, decoder, cross, each by layer and head.
std::vector<HeadPlace> all_heads(const ModelConfig& config);

// The tokens of one text as an attention sees them: rows attend to columns.
struct AttentionAxes {
  AttentionPart part;
  const HeadText& text;

  const TextSide& rows() const { return part == AttentionPart::encoder ? text.source : text.target; }
  const TextSide& columns() const { return part == AttentionPart::decoder ? text.target : text.source; }
  bool is_self() const { return part != AttentionPart::cross; }
  bool is_causal() const { return part == AttentionPart::decoder; }
  // Returns the number of keys that a row sees without a window.
  int64_t seen(int64_t row) const { return is_causal() ? row + 1 : std::ssize(columns().ids); }
};

// Computes the weights of every head on every chosen text. Calls visit(place, text, A) with the index of the place in
// all_heads and that of the text in texts.texts; A: [rows, columns]. Calls for one place are in the order of the texts;
// those for different places may run at the same time.
using VisitWeights = FunctionRef<void(size_t place, size_t text, Matrix<const float> A)>;
void visit_weights(const HeadTexts& texts, std::span<const size_t> chosen, Arena& arena, VisitWeights visit);

}  // namespace qkv
