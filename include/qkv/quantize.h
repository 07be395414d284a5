// Runs with weights in 8 or 4 bits, which take less memory and are faster. docs/run-directory.md describes the format.
#pragma once

#include <cstdint>
#include <string>

namespace [[gnu::visibility("default")]] qkv {

struct QuantizeReport {
  std::string out;                               // the run directory that was written
  int64_t int8_matrices = 0, int4_matrices = 0;  // all other parameters stay float32
  int64_t bytes_before = 0, bytes = 0;           // weights in memory, before and after
};

// Writes the run directory `out` ("": the path of `run` with "-int8" or "-int4" appended), whole or not at all: a copy
// of `run`, of any kind, with quantized matrices of products and embeddings. It serves like any run but cannot be
// trained. `bits` is 8 or 4. With 4, matrices of linear layers have 4 bits where their number of rows is a multiple of
// 16 and of columns a multiple of 64; the other matrices have 8, among them the embeddings and the output. Throws
// Error, naming the file, if `out` exists, or if `run` is invalid, is quantized already, or has no matrix that may have
// so few bits.
QuantizeReport quantize_run(const std::string& run, const std::string& out = "", int bits = 8);

}  // namespace qkv
