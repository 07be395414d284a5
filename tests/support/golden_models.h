// The models of tests/golden in the Hugging Face layout, with what is needed to import them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "qkv/import.h"
#include "tests/support/bert_case.h"
#include "tests/support/decoder_cases.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {

// Every directory of tests/golden with weights in the Hugging Face layout.
inline std::vector<std::string> golden_models() {
  namespace fs = std::filesystem;
  std::vector<std::string> models;
  for (const auto& entry : fs::recursive_directory_iterator(QKV_GOLDEN_DIR)) {
    const std::string name = entry.path().filename(), directory = entry.path().parent_path();
    if (name != "model.safetensors" && name != "model.safetensors.index.json") continue;
    if (fs::exists(directory + "/config.json") &&
        slurp(directory + "/config.json").find("\"model_type\"") != std::string::npos)
      models.push_back(directory);
  }
  std::ranges::sort(models);
  return models;
}

// Copies a golden model. Decoders get a tokenizer.
inline void copy_golden_model(const std::string& model, const std::string& to) {
  const std::filesystem::path path = model;
  if (path.parent_path().filename() == "transformers") return copy_decoder_case(path.filename(), to);
  std::filesystem::copy(path, to, std::filesystem::copy_options::recursive);
}

// Encoders that have only a list of tokens read tokens.
inline ImportOptions golden_options(const std::string& model) {
  return std::filesystem::path(model).parent_path().filename() == "bert" ? listed_tokens() : ImportOptions();
}

// Returns whether two directories have the same files with the same bytes.
inline bool same_files(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(a)) {
    const fs::path other = b / fs::relative(entry.path(), a);
    files++;
    if (entry.is_regular_file() && (!fs::exists(other) || slurp(entry.path()) != slurp(other))) return false;
  }
  return files == static_cast<size_t>(std::distance(fs::recursive_directory_iterator(b), {}));
}

}  // namespace qkv::testing
