// Runs with weights in 8 bits: a quarter of the bytes, and products of 8-bit integers. docs/run-directory.md has the
// format.
#pragma once

#include <cstdint>
#include <string>

namespace qkv {

struct QuantizeReport {
  std::string out;                      // the run directory that was made
  int64_t int8_matrices = 0;            // the other parameters stay float32
  int64_t bytes_before = 0, bytes = 0;  // weights in memory
};

// Makes the run directory `out` ("": the name of `run` with "-int8" behind it), whole or not at all: `run` with the
// matrices of products and embeddings in 8 bits, without what training left. It translates or recommends; it cannot be
// trained.
// Throws Error, naming the file, if out exists, if run cannot be read, is in 8 bits already, or has no matrix whose
// columns are a multiple of 4.
QuantizeReport quantize_run(const std::string& run, const std::string& out = "");

}  // namespace qkv
