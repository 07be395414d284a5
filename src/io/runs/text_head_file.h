// The file of the head of an embedder or a classifier, which follows the weights of its model.
#pragma once

#include "io/runs/run_directory.h"
#include "model/transformer.h"

namespace qkv {

// Writes the text head of a model to the file that load_run reads: run.classifier() for labels, run.dense() for linear
// layers after the pooling. Writes nothing for vectors without them, nor the temperature. Throws Error, naming the
// file.
void write_text_head(const RunDirectory& run, const Transformer<float>& model);

}  // namespace qkv
