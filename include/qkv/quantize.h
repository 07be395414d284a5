// Runs with 8-bit weights: a quarter of the memory, and products of 8-bit integers. docs/run-directory.md describes the
// format.
#pragma once

#include <cstdint>
#include <string>

namespace qkv {

struct QuantizeReport {
  std::string out;                      // the run directory that was written
  int64_t int8_matrices = 0;            // number of quantized matrices; all other parameters stay float32
  int64_t bytes_before = 0, bytes = 0;  // weights in memory, before and after
};

// Writes the run directory `out` ("": the path of `run` with "-int8" appended), whole or not at all: a copy of `run`,
// of any kind, with 8-bit matrices of products and embeddings. It serves like any run but cannot be trained. Throws
// Error, naming the file, if `out` exists, or if `run` is invalid, already has 8-bit weights, or has no matrix whose
// number of columns is a multiple of 4.
QuantizeReport quantize_run(const std::string& run, const std::string& out = "");

}  // namespace qkv
