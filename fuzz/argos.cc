// An .argosmodel package: a zip archive with a CTranslate2 model in it.
#include "fuzz/import.h"

void qkv::fuzz::read(std::string_view bytes) {
  const MemoryFile file(bytes);
  import_and_load(file.path(), {.tokens = true});
}
