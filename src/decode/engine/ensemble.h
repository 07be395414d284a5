// An ensemble of models: the probability of a token is the mean over all models. Usually there is one model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "model/inference/inference_engine.h"
#include "model/transformer.h"
#include "qkv/config.h"
#include "qkv/matrix.h"

namespace qkv {

class Ensemble {
 public:
  // A model on the host, which must outlive the ensemble.
  Ensemble(const Transformer<float>& model) : Ensemble(std::vector{make_host_inference(model)}) {}
  // Throws Error if the vocabularies differ in size, or there is no model.
  explicit Ensemble(std::vector<std::shared_ptr<const InferenceEngine>> models) : models_(std::move(models)) {
    if (models_.empty()) fail("ensemble must have at least one model");
    for (const auto& model : models_) {
      const ModelConfig &a = config(), &b = model->config();
      if (a.source_vocab != b.source_vocab || a.target_vocab != b.target_vocab)
        fail("ensemble: vocabularies have {} and {} tokens, those of the first model {} and {}; they must be equal",
             b.source_vocab, b.target_vocab, a.source_vocab, a.target_vocab);
    }
  }

  size_t size() const { return models_.size(); }
  const InferenceEngine& operator[](size_t i) const { return *models_[i]; }
  const InferenceEngine& front() const { return *models_.front(); }
  const ModelConfig& config() const { return front().config(); }  // of the first model
  // Returns the maximum sequence length in tokens that all models support.
  int64_t max_length() const {
    int64_t least = config().max_length;
    for (const auto& model : models_) least = std::min(least, model->config().max_length);
    return least;
  }

 private:
  std::vector<std::shared_ptr<const InferenceEngine>> models_;
};

// Computes the log-probabilities of an ensemble, log(1/K Σ_k softmax(logits_k)). logits: [N, V] for each of K ≥ 1
// models. They are overwritten; the result is stored in the first.
Matrix<float> log_mean_probability(std::span<const Matrix<float>> logits);

}  // namespace qkv
