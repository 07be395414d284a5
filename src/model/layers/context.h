// The state of a forward or backward pass, in addition to its inputs.
#pragma once

#include <cstdint>
#include <span>

#include "core/arena.h"
#include "core/function_ref.h"
#include "model/layers/probe.h"
#include "qkv/dropout.h"

namespace qkv {

struct Context {
  Arena& arena;                             // activations and temporaries, which the caller frees after backward
  bool training = false;                    // whether dropout is applied
  uint64_t seed = 0;                        // of the dropout masks
  uint32_t step = 0;                        // number of batches so far
  bool recompute = false;                   // a stack keeps only the inputs of its layers (model/recompute.h)
  bool int8 = false;                        // linear layers use ops/int8_linear.h, in both passes
  std::span<const int32_t> positions = {};  // of the tokens of a stack, for rotary positions
  bool inference = false;  // no backward follows: products use ops/row_linear.h, and weights may be in 8 bits

  // Let several ranks exchange weights and gradients during a pass (train/loop/step_exchange.h). A forward pass uses
  // the parameters of a model in the order of declaration, and the backward pass completes their gradients in reverse.
  // on_use is called before the first `end` parameters are used, on_complete when the gradients from parameter `first`
  // on are complete.
  FunctionRef<void(int64_t end)> on_use = {};
  FunctionRef<void(int64_t first)> on_complete = {};

  Probe* probe = nullptr;  // of the outputs of all ops; usually none

  void use(int64_t end) const {
    if (on_use) on_use(end);
  }
  void complete(int64_t first) const {
    if (on_complete) on_complete(first);
  }

  template <class Real>
  void probed(const char* op, Matrix<Real> output, Pass pass = Pass::forward, int64_t first = 0) const {
    if (probe) probe->output(op, pass, output, first);
  }
  template <class Real>
  void probed_gradient(const char* op, Matrix<Real> gradient) const {
    if (probe) probe->gradient(op, Matrix<const Real>(gradient));
  }

  Dropout dropout(double p, uint32_t site) const {
    return training ? Dropout{static_cast<float>(p), seed, step, site} : Dropout{};
  }
};

// Numbers the places of a network that have dropout. The low 12 bits are free for the index of a head.
class DropoutSites {
 public:
  uint32_t next() { return ++last_ << 12; }

 private:
  uint32_t last_ = 0;
};

}  // namespace qkv
