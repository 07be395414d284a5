// model.safetensors of a BERT directory.
#include "fuzz/import.h"
#include "io/encoder_run.h"

namespace {

constexpr const char* kConfig =
    R"({"model_type": "bert", "vocab_size": 8, "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
        "intermediate_size": 12, "max_position_embeddings": 32})";

}  // namespace

void qkv::fuzz::read(std::string_view bytes) {
  static const SourceDirectory source("model.safetensors",
                                      {{"config.json", kConfig}, {"vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\nc\n"}});
  const MemoryFile file(bytes);
  ImportOptions options;
  options.tokens = true;
  static const testing::TempDir directory;
  const std::string run = directory / "run";
  import_model(source.path(), run, options);
  try {
    load_encoder(run);
  } catch (const Error& error) {
    require(false, error.what());
  }
  std::filesystem::remove_all(run);
}
