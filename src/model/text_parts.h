// Outputs of a batch of texts, and the gradient of a loss that needs all of them, computed in parts so that activations
// of one part alone are in memory. Gao et al., "Scaling Deep Contrastive Learning Batch Size under Memory Limited
// Setup" (2021).
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "model/transformer.h"

namespace qkv {

// Keeps its memory from batch to batch. Not thread-safe.
template <class Real>
class TextParts {
 public:
  // Returns the loss of the outputs v of the text head for all sequences of a batch, and adds its gradient to those of
  // the parameters, as text_loss_and_gradient does. Sequences are computed in parts of at most part_tokens tokens, in
  // their order; a longer one is a part of its own. With several parts, all outputs are computed first, without what a
  // backward pass needs, and each part is computed again for its gradient. Both passes have the same dropout masks.
  // Each part has masks of its own, so with dropout the result depends on part_tokens.
  Loss loss_and_gradient(const Transformer<Real>& model, const Batch& batch, typename Transformer<Real>::LossOf loss_of,
                         int64_t part_tokens, Context& c);
  // Assigns the outputs of the text head for all sequences of a batch, v: [sequences, width], in such parts.
  void outputs(const Transformer<Real>& model, const Batch& batch, int64_t part_tokens, Context& c, Matrix<Real> v);

 private:
  void cut(const Batch& batch, int64_t part_tokens);
  Context begin_part(const Batch& batch, size_t part, const Context& c);
  void part_outputs(const Transformer<Real>& model, const Batch& batch, Context& c, Matrix<Real> v);

  std::vector<int64_t> parts_;  // the first sequence of each part, then the number of sequences
  Batch part_;
};

extern template class TextParts<float>;
extern template class TextParts<double>;

}  // namespace qkv
