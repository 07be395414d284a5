// The run of a language model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/runs/chat_files.h"
#include "io/runs/run_directory.h"
#include "model/transformer.h"
#include "qkv/inspect.h"
#include "qkv/language.h"
#include "text/text_codec.h"

namespace qkv {

// The tokens around a text.
struct TextEnds {
  int32_t start = 0;
  std::vector<int32_t> ends;   // at least one
  bool starts_prompts = true;  // whether `start` precedes every prompt; otherwise only an empty one

  // Returns the tokens that a model reads to continue a prompt. is_complete: the prompt has its start token already, or
  // is to have none.
  std::vector<int32_t> beginning(std::span<const int32_t> prompt, bool is_complete = false) const;
};

// Throws Error, beginning with `where`, for a token that the vocabulary lacks, and if no token ends a text.
TextEnds ends_of(const LanguageConfig& config, const TextCodec& codec, const std::string& where);

struct LanguageRun {
  static constexpr RunKind kKind = RunKind::language_model;

  ModelConfig config;  // a decoder alone, with the codec's tokens
  LanguageConfig language;
  TextCodec codec;
  ChatFiles chat = {};
  TextEnds ends = {};                                   // set when read
  std::unique_ptr<Transformer<float>> model = nullptr;  // null until the weights are loaded

  // Reads and writes the files of this kind: language.json and the file of its unit. Nothing in the directory is
  // trusted. Throws Error, naming file and field.
  static LanguageRun read(const RunDirectory& run, const ModelConfig& config);
  void write(const RunDirectory& run) const;
};

}  // namespace qkv
