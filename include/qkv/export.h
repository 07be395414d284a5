// Export of run directories as models of Hugging Face's transformers, for from_pretrained(). docs/export.md says which
// run becomes which class.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] qkv {

// The type of the written weights.
enum class ExportType { float32, float16, bfloat16 };
constexpr std::array<std::string_view, 3> names_of(ExportType) { return {"float32", "float16", "bfloat16"}; }

struct ExportReport {
  std::string model_type;  // model_type of the class, "gpt2"
  int64_t parameters = 0;  // numbers that were written
};

// Writes the model of `run` into the directory `out`, whole or not at all: model.safetensors, config.json,
// generation_config.json and the files of its tokenizer, or for a recommender the names of its items in vocab.json. An
// encoder gets the files of sentence-transformers, too, and a classifier is written with its head.
// Parts that the class of transformers has and the model lacks are written so that they have no effect: biases of
// zeros, sinusoids as a table of positions. Throws Error if `out` exists, if `run` is incomplete, broken or quantized,
// if a number is too large for `type`, and, naming the field, if no class can express the configuration.
ExportReport export_model(const std::string& run, const std::string& out, ExportType type = ExportType::float32);

}  // namespace qkv
