// The run of a translator.
#pragma once

#include <memory>
#include <string>

#include "io/runs/run_directory.h"
#include "io/runs/translation_config.h"
#include "model/transformer.h"
#include "qkv/inspect.h"

namespace qkv {

struct TranslatorRun {
  static constexpr RunKind kKind = RunKind::translator;

  ModelConfig config;  // encoder and decoder; vocabularies of the tokenizers' sizes
  TokenizerPair tokenizers;
  TranslationConfig translation;
  TranslationTokens tokens = {};                        // `translation` as ids; set when read
  std::unique_ptr<Transformer<float>> model = nullptr;  // null until the weights are loaded

  // Reads and writes the files of this kind: translation.json and the tokenizers. Nothing in the directory is trusted.
  // Throws Error, naming file and field.
  static TranslatorRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

}  // namespace qkv
