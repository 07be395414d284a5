// model.safetensors of a GPT-NeoX directory, whose queries, keys and values are one matrix, head by head.
#include "fuzz/decoder.h"

void qkv::fuzz::fuzz_gpt_neox(std::string_view bytes) { import_decoder("gpt_neox", bytes); }
