// model.safetensors of a Llama directory.
#include "fuzz/decoder.h"

void qkv::fuzz::fuzz_llama(std::string_view bytes) { import_decoder("llama", bytes); }
