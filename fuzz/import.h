// Imports a directory with one file of the fuzzer's bytes, or a file of nothing else.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>

#include "fuzz/reader.h"
#include "io/runs/run.h"
#include "qkv/import.h"
#include "tests/support/foreign_models.h"
#include "tests/support/temp_dir.h"

namespace qkv::fuzz {

// A directory of fixed files, and one, `name`, that is the current MemoryFile.
class SourceDirectory {
 public:
  SourceDirectory(const std::string& name, std::initializer_list<std::pair<const char*, std::string>> files) {
    std::filesystem::create_symlink(MemoryFile("").path(), directory_ / name);
    for (const auto& [other, content] : files) testing::spill(directory_ / other, content);
  }
  const std::string& path() const { return directory_.path(); }

 private:
  testing::TempDir directory_;
};

// Imports a source. The run that is written must load.
inline void import_and_load(const std::string& source, const ImportOptions& options, void (*load)(const std::string&)) {
  static const testing::TempDir directory;
  const std::string run = directory / "run";
  import_model(source, run, options);
  must_succeed([&] { load(run); });
  std::filesystem::remove_all(run);
}

// Imports a translator.
inline void import_translator(const std::string& source, const ImportOptions& options) {
  import_and_load(source, options, [](const std::string& run) { load_run<TranslatorRun>(run); });
}

// The pieces of every vocabulary.
inline constexpr const char* kPieceList = R"(["</s>", "<unk>", "a", "b", "c", ">>de<<", "<pad>"])";

// Makes a model as narrow as all of them: two heads of width 2.
inline void make_narrow(ModelConfig& c) {
  c.d_model = c.ffn = 4;
  c.attention.heads = c.attention.key_width = c.attention.value_width = 2;
  c.max_length = 32;
}

inline ModelConfig small_foreign() {
  ModelConfig c = testing::foreign_config();
  c.encoder_layers = 1;
  make_narrow(c);
  return c;
}

// config.json of the same model in MarianMT.
inline constexpr const char* kMarianConfig =
    R"({"model_type": "marian", "vocab_size": 7, "encoder_layers": 1, "decoder_layers": 1, "d_model": 4,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 4, "decoder_ffn_dim": 4,
        "activation_function": "swish", "scale_embedding": true, "max_position_embeddings": 32,
        "pad_token_id": 6, "decoder_start_token_id": 6, "eos_token_id": 0})";

}  // namespace qkv::fuzz
