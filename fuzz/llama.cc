// model.safetensors of a Llama directory.
#include <fmt/format.h>

#include "fuzz/import.h"
#include "io/language_run.h"

namespace {

const std::string& config() {
  static const std::string text = fmt::format(
      R"({{"model_type": "llama", "vocab_size": {}, "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
          "num_key_value_heads": 1, "intermediate_size": 12, "max_position_embeddings": 32, "eos_token_id": 2,
          "tie_word_embeddings": true}})",
      qkv::fuzz::small_tokenizer().size());
  return text;
}

}  // namespace

void qkv::fuzz::read(std::string_view bytes) {
  static const SourceDirectory source("model.safetensors", {{"config.json", config().c_str()}});
  static const bool spilled = (testing::spill(source.path() + "/tokenizer.model", small_tokenizer().serialized()), true);
  const MemoryFile file(bytes);
  static const testing::TempDir directory;
  const std::string run = directory / "run";
  require(spilled, "");
  import_model(source.path(), run, {});
  try {
    load_language_model(run);
  } catch (const Error& error) {
    require(false, error.what());
  }
  std::filesystem::remove_all(run);
}
