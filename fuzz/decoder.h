// `qkv import` of a decoder-only model whose model.safetensors is the fuzzer's bytes; what is written can be loaded.
#pragma once

#include <nlohmann/json.hpp>

#include "fuzz/import.h"
#include "import/architecture.h"

namespace qkv::fuzz {

// A tokenizer of a dozen pieces, without normalisation: checking its table would take 50 ms per input.
inline const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::train(std::vector<std::string>(40, "a b c abc"),
                                                      {.vocab_size = 12, .normalization = Normalization::none});
  return tokenizer;
}

inline ModelConfig small_decoder(const std::string& type) {
  ModelConfig c;
  c.encoder_layers = 0;
  c.shared_embeddings = c.scale_embeddings = false;
  c.target_vocab = small_tokenizer().size();
  c.decoder_layers = 1;
  make_narrow(c);
  c.norm.position = NormPosition::pre;
  c.norm.final = true;
  if (type == "gpt2") {
    c.positions = Positions::learned;
    return c;
  }
  c.attention.key_value_heads = 1;
  c.gated_ffn = true;
  c.ffn_bias = c.attention.input_bias = c.attention.output_bias = false;
  c.norm.kind = NormKind::rms;
  c.positions = Positions::rotary;
  return c;
}

// A program reads one type only.
inline void import_decoder(const std::string& type, std::string_view bytes) {
  static const SourceDirectory source(
      "model.safetensors", {{"config.json", write_config(*find_architecture(type), small_decoder(type)).dump()},
                            {"tokenizer.model", small_tokenizer().serialized()}});
  const MemoryFile file(bytes);
  import_and_load(source.path(), {}, [](const std::string& run) { load_run<LanguageRun>(run); });
}

}  // namespace qkv::fuzz
