// The run of a classifier: an encoder with a head, whose weights are in classifier.safetensors.
#pragma once

#include <memory>

#include "io/runs/encoder_run.h"
#include "model/layers/classification_head.h"
#include "qkv/classifier.h"

namespace qkv {

struct ClassifierRun : EncoderRun {
  static constexpr RunKind kKind = RunKind::classifier;

  ClassificationConfig classification = {};
  std::shared_ptr<const ClassificationHead> head = nullptr;  // set when read

  // Reads and writes the files of an encoder, classification.json and, if there is a head, its weights. Nothing in the
  // directory is trusted. Throws Error, naming file and field.
  static ClassifierRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

}  // namespace qkv
