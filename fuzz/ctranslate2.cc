// model.bin of a CTranslate2 directory.
#include "fuzz/import.h"

void qkv::fuzz::fuzz_ctranslate2(std::string_view bytes) {
  static const SourceDirectory source("model.bin",
                                      {{"config.json", R"({"add_source_eos": true, "decoder_start_token": "</s>"})"},
                                       {"shared_vocabulary.json", kPieceList}});
  const MemoryFile file(bytes);
  import_translator(source.path(), {.tokens = true});
}
