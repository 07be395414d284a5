// The run from which the training of an embedder or a classifier starts, as the parts of an encoder: an encoder, a
// classifier or a language model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "io/runs/run_kinds.h"
#include "model/transformer.h"
#include "qkv/training.h"

namespace qkv {

struct TextStart {
  RunKind kind = RunKind::encoder;
  ModelConfig whole = {};  // the model of the run
  // Without weights. The model has no output layer. A language model pools the last token; its start token is put
  // before a text unless the vocabulary has no spelling of it, as for characters and bytes.
  EncoderRun run = {};
  std::vector<DenseShape> dense = {};                       // the linear layers after the pooling of an encoder
  std::optional<ClassificationConfig> classification = {};  // of a classifier
};

// Reads a run. Nothing in the directory is trusted. Throws Error, naming the file, or the kind of a run of another
// kind.
TextStart read_text_start(const std::string& directory);

// Returns the shapes of the linear layers after the pooling of a run that was read.
std::vector<DenseShape> dense_shapes(const EncoderRun& run);

// Returns the most tokens of a text: `given`, if that is not 0, else that of the run, or the model's. Throws Error
// unless it is between `least` and the model's max_length.
int64_t text_length(const EncoderRun& run, int64_t given, int64_t least);

// Returns a model of the recipe with the weights of the run `init`, by name. Parameters that the run lacks, or has in
// another shape, get initial values; `takes_head`: those of the head are also taken from the run. Throws Error, naming
// the run, if its weights are quantized.
std::unique_ptr<Transformer<float>> start_model(const std::string& init, const Recipe& recipe, bool takes_head);

// Appends a text to a batch: to the source of an encoder, otherwise to the target. types: of the tokens; may be empty.
void append_text(const ModelConfig& model, std::span<const int32_t> ids, std::span<const int32_t> types, Batch& batch);

}  // namespace qkv
