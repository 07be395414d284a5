// model.safetensors of a GPT-2 directory, whose weights are transposed and partly three in one tensor.
#include "fuzz/decoder.h"

void qkv::fuzz::fuzz_gpt2(std::string_view bytes) { import_decoder("gpt2", bytes); }
