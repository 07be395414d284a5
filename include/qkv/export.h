// Run directories as models of transformers: from_pretrained() loads what is written. docs/export.md says which run
// becomes which class.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

// What weights are written as.
enum class ExportType { float32, float16, bfloat16 };
constexpr std::array<std::string_view, 3> names_of(ExportType) { return {"float32", "float16", "bfloat16"}; }

struct ExportReport {
  std::string model_type;  // "marian", "gpt2", "llama", "mistral", "qwen2", "qwen3", "starcoder2"
  int64_t parameters = 0;  // numbers that were written
};

// Writes the model of `run` into the directory `out`: model.safetensors, config.json, generation_config.json, and its
// tokeniser's files, or for a recommender the names of its items in vocab.json; whole or not at all. What the class of
// transformers has besides is written as what does nothing: biases of zeros, sinusoids as a table of positions. Throws
// Error if out exists, if run is not whole and sound or in 8 bits, if a number is too large for `type`, and, naming the
// field, if no class has what the configuration says.
ExportReport export_model(const std::string& run, const std::string& out, ExportType type = ExportType::float32);

}  // namespace qkv
