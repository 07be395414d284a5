// The language models of tests/golden/transformers. Import and export are tested with each of them.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/sentencepiece_model.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {

inline constexpr const char* kDecoderCases[] = {
    "gemma2",  "gemma3",  "gemma3_text", "gpt2", "gpt_neox", "gpt_neox_sequential", "llama", "llama3",
    "mistral", "olmo2",   "opt",         "phi",  "phi3",     "phi_grouped",         "qwen2", "qwen2_layers",
    "qwen3",   "smollm3", "starcoder2"};

// Copies a model to a new directory, and adds a tokenizer with as many pieces as the models have tokens.
inline void copy_decoder_case(const std::string& name, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(std::string(QKV_GOLDEN_DIR "/transformers/") + name, to);
  std::string pieces;
  for (int i = 3; i < 32; i++) pieces += spm::piece("p" + std::to_string(i));
  spill(to + "/tokenizer.model", spm::with_pieces(pieces));
}

}  // namespace qkv::testing
