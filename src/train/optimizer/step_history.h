// The steps that a row missed, for rows that are updated only when they occur (ops/adam_rows.h).
//
// Row w, m, v as of step t. In a missed step s the gradient is zero, so m = β1^(s−t) m_t, v = β2^(s−t) v_t, and with
// x = m_t / √(v_t / (1 − β2^t)) the row moves by c_s x, where
//   c_s = η_s / (1 − β1^s) · √(1 − β2^s) / √(1 − β2^t) · (β1 / √β2)^(s−t)
// Hence w = w_t − S_s x with S_s = Σ c, and the average, with a_s as its decay, is
//   Π a_s average_t + (1 − Π a_s) w_t − B x,   B ← a_s B + (1 − a_s) S_s
#pragma once

#include <cstdint>
#include <vector>

#include "ops/adam_rows.h"
#include "qkv/training.h"

namespace qkv {

class StepHistory {
 public:
  explicit StepHistory(const TrainingConfig& config);

  // Makes room for the steps of most trainings.
  void reserve();

  // Makes the steps up to `step` known.
  void extend(int64_t step);
  // Returns the factors of the steps after `last`, up to `step`; both known, and 1 <= last <= step.
  MissedSteps between(int64_t last, int64_t step) const;

 private:
  struct Step {
    double rate = 0;      // η / (1 − β1^s) · √(1 − β2^s)
    double decay = 1;     // of the average
    double log_kept = 0;  // Σ log decay over the steps so far
  };

  const TrainingConfig& config_;
  double ratio_;   // β1 / √β2
  int64_t moves_;  // number of missed steps that move a row; the moves of later ones are below rounding
  std::vector<Step> steps_;
};

}  // namespace qkv
