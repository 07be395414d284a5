// An .argosmodel package: a zip archive with a CTranslate2 model in it.
#include "fuzz/import.h"

void qkv::fuzz::fuzz_argos(std::string_view bytes) {
  const MemoryFile file(bytes);
  import_translator(file.path(), {.tokens = true});
}
