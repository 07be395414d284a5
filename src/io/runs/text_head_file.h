// The file of the head of an embedder or a classifier, which follows the weights of its model. The weights name their
// head, because a process may be killed after one of the two files was written.
#pragma once

#include <map>
#include <string>

#include "io/runs/run_directory.h"
#include "io/runs/run_kinds.h"
#include "model/transformer.h"

namespace qkv {

// Writes the text head of a model to the file that load_run reads: run.classifier() for labels, run.dense() for linear
// layers after the pooling. Writes nothing for vectors without them, nor the temperature. Throws Error, naming the
// file.
void write_text_head(const RunDirectory& run, const Transformer<float>& model);

// Returns the metadata by which the weights of a model name the head that write_text_head writes; empty if it writes
// nothing.
std::map<std::string, std::string> head_metadata(const Transformer<float>& model);

// Throws Error if the weights of the directory name another head than the run has. Weights that name none, such as
// imported ones, are not compared.
void expect_own_head(const RunDirectory& directory, const EncoderRun& run);
void expect_own_head(const RunDirectory& directory, const ClassifierRun& run);

}  // namespace qkv
