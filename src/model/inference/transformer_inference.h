// Inference by a Transformer, for elements of the host or of a device.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/inference/inference_engine.h"
#include "model/inference/layer_rows.h"
#include "model/transformer.h"

namespace qkv {

template <class Real>
class TransformerInference : public InferenceEngine {
 public:
  // `host` must outlive the object.
  TransformerInference(const Transformer<float>& host, std::shared_ptr<const Transformer<Real>> model)
      : InferenceEngine(host), model_(std::move(model)) {}

  Matrix<float> hidden(const Packed& texts, Context& c) const override;
  Matrix<float> last_hidden(const Packed& target, Context& c) const override;

  int64_t row_bytes() const override;
  std::unique_ptr<KeysValues> make_rows(const CacheRows& rows, Arena& memory) const override;
  std::unique_ptr<KeysValues> make_growing_rows() const override;

  void encode(const Packed& sources, std::span<const RowRange> rows, KeysValues& to, Context& c) const override;
  std::vector<NextResult> step(const DecodingStep& step, KeysValues& rows, std::span<const NextRequest> requests,
                               Context& c) const override;

 private:
  NextResult next(Matrix<const Real> h, const NextRequest& request, Context& c) const;

  std::shared_ptr<const Transformer<Real>> model_;
};

}  // namespace qkv
