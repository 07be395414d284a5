// The model that is trained, and a second one with the weights that are evaluated. If the run is an adapter, both use
// the weights of its base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/arena.h"
#include "io/runs/adapter.h"
#include "io/runs/run_directory.h"
#include "model/transformer.h"
#include "qkv/training.h"

namespace qkv {

class TrainedModel {
 public:
  // Sets the weights that training starts from, those of another run or random ones, and makes room for gradients.
  // `has_gradients` is false if those of a small table are computed instead (train/optimizer/step_table.h).
  TrainedModel(const Recipe& recipe, const RunDirectory& run, bool has_gradients);

  const Transformer<float>& model() const { return model_; }
  const Transformer<float>& candidate() const { return candidate_; }  // that is evaluated
  // The parameters of the adapter if there is one, otherwise those of the model.
  ParameterList<float>& trained() { return model_.trained(); }
  std::span<float> candidate_values() { return candidate_.trained().values(); }

  bool is_adapter() const { return adapter_.has_value(); }
  // Clears the gradients of the vectors of a base, which nothing uses.
  void clear_base_gradients();
  // Sets the candidate to the mean of the weights of the last evaluations, at most `count` of those after `steps`.
  // Returns false if there is only one.
  bool average_evaluations(const RunDirectory& run, std::span<const int64_t> steps, int64_t count, Arena& arena);
  // Writes the values of the candidate as the model of the run, without a text head, which has a file of its own
  // (io/runs/text_head_file.h).
  void write_candidate(const RunDirectory& run);

  size_t base_bytes() const { return base_ ? base_->parameters().values().size_bytes() : 0; }

 private:
  std::optional<Adapter> adapter_;            // the one that is trained, if the run is an adapter
  std::unique_ptr<Transformer<float>> base_;  // whose weights both use then
  Transformer<float> model_, candidate_;
};

}  // namespace qkv
