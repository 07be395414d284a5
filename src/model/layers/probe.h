// Sees, and may change, the outputs of all ops of a pass over a model. The check for numbers that are not finite is one
// (finite_check.h), and so is what src/analysis measures and removes. Without a probe, an op costs one comparison more.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "qkv/matrix.h"

namespace qkv {

// The side of the batch whose tokens are the rows of an output.
enum class TokenSide { none, source, target };

enum class Pass { forward, backward };

// Not thread-safe.
class Probe {
 public:
  // A part of the model, in which the outputs are while it exists. `probe` may be null.
  class Part {
   public:
    // Rows are tokens of the side of the surrounding part.
    Part(Probe* probe, const char* name, int64_t number = -1);
    Part(Probe* probe, const char* name, TokenSide side);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    void rename(const char* name);

   private:
    Probe* probe_;
  };

  virtual ~Probe() = default;

  // In the forward pass m is the output of an op, in the backward pass the gradient of its input. Row 0 belongs to
  // token `first` of the batch. The pass continues with the values that m then has. Outputs that analyses need:
  //   forward   "lookup"     the embeddings with their positions, [N, d], in part "embedding"
  //             "state"      hidden states, [N, d]: the input of the first layer in part "embedding", the output of a
  //                          layer in its part
  //             "attention"  the heads side by side before W_O, [N, H d_v], in "self-attention" and "cross-attention"
  //             "branch"     what a sublayer adds to the residual stream, [N, d], without its dropout
  //             "residual"   the sum, [N, d], in post-norm before the norm
  //             "norm"       with no part but the side: the last hidden states, if the stack has a final norm
  //   backward  "heads"      the gradient of "attention"
  //             "branch"     that of "branch"
  //             "lookup"     that of "lookup"
  // In a parallel layer "residual" is seen after each of its two sublayers.
#define QKV_DECLARE(T)                                                             \
  virtual void output(std::string_view op, Pass pass, Matrix<T> m, int64_t first); \
  virtual void gradient(std::string_view op, Matrix<const T> m);  // of parameters
  QKV_FOR_EACH_ELEMENT(QKV_DECLARE)
#undef QKV_DECLARE

  // A batch may be computed in parts, by several threads. Returns the probe of a part, or null for none.
  virtual std::unique_ptr<Probe> of_part() const { return nullptr; }
  // Takes what the probe of a part found; the first tokens of the part are these. Called in the order of the parts.
  virtual void take(const Probe& part, int64_t first_source, int64_t first_target);

 protected:
  struct Entry {
    const char* name;
    int64_t number;  // of a layer; -1: none
    TokenSide side;
  };
  // The parts around the output that is seen, the outermost first: "decoder", "layer" 3, "self-attention".
  const std::vector<Entry>& parts() const { return parts_; }
  TokenSide side() const { return parts_.empty() ? TokenSide::none : parts_.back().side; }

 private:
  std::vector<Entry> parts_;
};

}  // namespace qkv
