// Run directories: their contents and memory, adapters (LoRA) merged into their bases (docs/fine-tuning.md), and
// weights in 8 or 4 bits, which take less memory and are faster (docs/run-directory.md).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/config.h"

namespace [[gnu::visibility("default")]] qkv {

// The kind of a run, as config.json states it.
enum class RunKind { translator, language_model, recommender, encoder, classifier };
constexpr std::array<std::string_view, 5> names_of(RunKind) {
  return {"translator", "language_model", "recommender", "encoder", "classifier"};
}

struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t count = 0;
  int bits = 32;  // of a number as it is stored: 32 (float32), 8 or 4 (integers with scales)
};

struct RunInfo {
  RunKind kind = RunKind::translator;
  int64_t format = 0;   // of the run directory
  std::string version;  // version of qkv that wrote the run
  ModelConfig model;
  ItemInputs items;  // of a recommender
  std::vector<ParameterInfo> parameters;
  int64_t parameter_count = 0;
  bool has_weights = false;    // false until the first evaluation of a training run
  int64_t serving_bytes = 0;   // weights in memory
  int64_t training_bytes = 0;  // weights, gradients, optimizer state, moving average and the copy that is evaluated,
                               // without activations; 0 if the run cannot be trained
};

// Reads a run directory. Throws Error, naming the file, if its configuration is invalid or its weights do not match it.
RunInfo inspect(const std::string& run_directory);

struct MergeReport {
  std::string base;        // the run that the adapter changes
  int64_t modules = 0;     // number of linear layers that it changes
  int64_t parameters = 0;  // of the merged model
};

// Writes the run directory `out`, whole or not at all: the adapter `run` with the weights of its base, as a run that
// needs neither. Throws Error, naming the file, if `out` exists, if `run` is no adapter or is broken, or if its base is
// missing or has changed.
MergeReport merge_run(const std::string& run, const std::string& out);

struct QuantizeReport {
  std::string out;                               // the run directory that was written
  int64_t int8_matrices = 0, int4_matrices = 0;  // all other parameters stay float32
  int64_t bytes_before = 0, bytes = 0;           // weights in memory, before and after
};

// Writes the run directory `out` ("": the path of `run` with "-int8" or "-int4" appended), whole or not at all: a copy
// of `run`, whatever its kind, with quantized matrices of products and embeddings. It can be served,
// but not trained. `bits` is 8 or 4. With 4, matrices of linear layers have 4 bits where their number of rows is a
// multiple of 16 and of columns a multiple of 64; the other matrices have 8, among them the embeddings and the output.
// Throws Error, naming the file, if `out` exists, or if `run` is invalid, is quantized already, or has no matrix that
// may have so few bits.
QuantizeReport quantize_run(const std::string& run, const std::string& out = "", int bits = 8);

}  // namespace qkv
