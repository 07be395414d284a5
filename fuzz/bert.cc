// model.safetensors of a BERT directory.
#include "fuzz/import.h"

namespace {

constexpr const char* kBertConfig =
    R"({"model_type": "bert", "vocab_size": 8, "num_hidden_layers": 1, "hidden_size": 4, "num_attention_heads": 2,
        "intermediate_size": 4, "max_position_embeddings": 32})";

}  // namespace

void qkv::fuzz::fuzz_bert(std::string_view bytes) {
  static const SourceDirectory source("model.safetensors",
                                      {{"config.json", kBertConfig}, {"vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\nc\n"}});
  const MemoryFile file(bytes);
  import_and_load(source.path(), {.tokens = true}, [](const std::string& run) { load_run<EncoderRun>(run); });
}
