// A GGUF file: the metadata, the tokenizer in it and the tensors. The run that is written can be loaded.
#include "fuzz/import.h"

void qkv::fuzz::fuzz_gguf(std::string_view bytes) {
  const MemoryFile file(bytes);
  import_and_load(file.path(), {}, [](const std::string& run) { load_run<LanguageRun>(run); });
}
