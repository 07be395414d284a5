// model.safetensors of a Llama directory.
#include "fuzz/decoder.h"

void qkv::fuzz::read(std::string_view bytes) { import_decoder(DecoderFamily::llama, bytes); }
