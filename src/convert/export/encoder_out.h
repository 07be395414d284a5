// Encoders, embedders and classifiers as directories of transformers and sentence-transformers.
#pragma once

#include "io/runs/run_kinds.h"
#include "qkv/export.h"

namespace qkv {

// Throws Error if the weights of a run are quantized.
void expect_exportable(const RunDirectory& run, const Transformer<float>& model);

// Writes an encoder: as a model for masked tokens, if it has the layers for them, and as the embedder that it is. With
// `head` it is a classifier. Throws Error, naming file and field, for what no class can express.
ExportReport export_encoder(const EncoderRun& loaded, const ClassificationConfig* head, const RunDirectory& run,
                            const RunDirectory& out, ExportType type);

}  // namespace qkv
