// Measurements of the library on this machine.
#pragma once

#include <cstdint>
#include <string>

namespace qkv {

struct TrainBenchmark {
  std::string preset;
  int64_t target_tokens = 0;  // of a step
  double median_ms = 0, best_ms = 0;
  double tokens_per_second = 0;  // target tokens, by the median
  int64_t parameters = 0;
  int64_t activation_bytes = 0;
};

// Times whole training steps (forward, backward, Adam) of a preset on random sentences of 8 to 16 tokens, about
// `tokens` / 16 of them, with or without recomputed activations: the work of nn.Transformer in a usual comparison.
// Three steps are not counted.
TrainBenchmark benchmark_training(const std::string& preset, int64_t tokens, int64_t steps, bool recompute = false);

// The most float32 operations a second that all threads do together in multiply-adds on registers, with the active
// instruction set: the limit that the speed of a kernel is a share of. Takes about `seconds`.
double measure_fma_peak(double seconds = 0.2);

}  // namespace qkv
