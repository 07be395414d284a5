// Encoders, embedders and classifiers as directories of transformers and sentence-transformers.
#pragma once

#include "io/runs/run_kinds.h"
#include "qkv/export.h"

namespace qkv {

// Throws Error if the weights of a run are quantized.
void expect_exportable(const RunDirectory& run, const Transformer<float>& model);

// Writes an encoder: as a model for masked tokens, if it has the layers for them, with the modules of an embedder. With
// `head` it is a classifier. Throws Error, naming file and field, for what no class can express, for a prefix of a
// classifier, and for a max_length that the model does not have.
ExportReport export_encoder(const EncoderRun& loaded, const ClassificationConfig* head, const RunDirectory& run,
                            const RunDirectory& out, ExportType type);

}  // namespace qkv
