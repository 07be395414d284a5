// model.safetensors of a MarianMT directory.
#include "fuzz/import.h"

void qkv::fuzz::fuzz_marian(std::string_view bytes) {
  static const SourceDirectory source(
      "model.safetensors",
      {{"config.json", kMarianConfig},
       {"vocab.json", R"({"</s>": 0, "<unk>": 1, "a": 2, "b": 3, "c": 4, ">>de<<": 5, "<pad>": 6})"}});
  const MemoryFile file(bytes);
  import_translator(source.path(), {.tokens = true});
}
