// The state dictionary of a PyTorch model, as a safetensors file; positions are sinusoids or a table.
#include "fuzz/import.h"

void qkv::fuzz::fuzz_torch(std::string_view bytes) {
  static const SourceDirectory vocabulary("unused", {{"pieces.json", kPieceList}});
  static ImportOptions options = [] {
    ImportOptions o;
    o.source_vocabulary = vocabulary.path() + "/pieces.json";
    o.start = o.end = "</s>";
    o.torch.source_embedding = "src.weight";
    o.torch.output_layer = "generator.weight";
    o.torch.heads = 2;
    return o;
  }();
  const MemoryFile file(bytes);
  for (const char* table : {"", "positions"}) {
    options.torch.position_table = table;
    attempt([&] { import_translator(file.path(), options); });
  }
}
