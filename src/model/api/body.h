// The part of a module (qkv/layers.h) that knows its layers: how they are called, and how their gradients come back.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/api/row_layout.h"
#include "model/layers/attention.h"
#include "model/layers/context.h"
#include "model/layers/parameter.h"
#include "qkv/layers.h"

namespace qkv::layers {

// The checked arguments of a forward pass. All rows are packed.
template <class Real>
struct PackedCall {
  std::vector<Matrix<const Real>> inputs;
  std::vector<const RowLayout*> layouts;  // of each input
  std::span<const int32_t> ids;           // of an Embedding, with layouts[0]
  Causal causal = Causal::none;
  Masks<Real> mask, memory_mask, source_mask;

  // The keys in the rows of input k that the queries in the rows of input q see.
  VisibleKeys<Real> keys(size_t q, size_t k, const Masks<Real>& masks) const {
    VisibleKeys<Real> keys(sequences_between(*layouts[q], *layouts[k]));
    keys.mask = masks.added;
    keys.allowed = masks.allowed;
    return keys;
  }
};

// An input of a module.
struct InputKind {
  const char* name;
  int64_t width;
  bool is_memory = false;  // its rows are Call::memory_rows
  bool optional = false;
};

// One attention of the last forward pass.
template <class Real>
struct AttentionPass {
  const qkv::MultiHeadAttention<Real>* layer;
  const typename qkv::MultiHeadAttention<Real>::Saved* saved;
  VisibleKeys<Real> keys;
  Causal causal;
};

template <class Real>
class Body {
 public:
  virtual ~Body() = default;

  virtual std::string name() const = 0;
  virtual std::vector<InputKind> inputs() const = 0;
  virtual size_t output_rows() const { return 0; }  // the input whose rows the output has
  virtual int64_t vocabulary() const { return 0; }  // of the ids of an Embedding
  virtual int64_t longest() const { return 0; }     // tokens of a sequence; 0 means any number

  virtual Matrix<Real> forward(const PackedCall<Real>& call, Context& c) = 0;
  // Returns the gradient of each input. May overwrite dy.
  virtual std::vector<Matrix<Real>> backward(const PackedCall<Real>& call, Matrix<Real> dy, Context& c) = 0;

  virtual std::vector<std::string> attention_kinds() const { return {}; }
  virtual int64_t attention_layers(const std::string&) const { return 0; }
  virtual AttentionPass<Real> attention(const PackedCall<Real>&, const std::string&, int64_t) const { return {}; }

  ParameterList<Real> parameters;
  DropoutSites sites;
};

}  // namespace qkv::layers
