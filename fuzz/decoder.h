// Imports a decoder-only model whose model.safetensors is the fuzzer's bytes. The run that is written can be loaded.
#pragma once

#include <map>
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "fuzz/import.h"

namespace qkv::fuzz {

// A tokenizer of a dozen pieces, without normalization: checking its table would take 50 ms per input.
inline const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::train(std::vector<std::string>(40, "a b c abc"),
                                                      {.vocab_size = 12, .normalization = Normalization::none});
  return tokenizer;
}

// A model with every kind of tensor that the architecture has.
inline ModelConfig small_decoder(const std::string& type) {
  ModelConfig c = find_architecture(type)->base;
  c.target_vocab = small_tokenizer().size();
  c.decoder_layers = 1;
  make_narrow(c);
  if (type == "llama") c.attention.key_value_heads = 1;
  if (type == "gpt_neox") c.sublayers = Sublayers::parallel;
  return c;
}

inline void import_decoder(const std::string& type, std::string_view bytes) {
  static std::map<std::string, SourceDirectory> sources;
  if (!sources.contains(type)) {
    const std::string config = write_config(*find_architecture(type), small_decoder(type), {}, "config.json").dump();
    const std::string pieces = small_tokenizer().serialized();
    sources.try_emplace(type, "model.safetensors",
                        std::initializer_list<std::pair<const char*, std::string>>{{"config.json", config},
                                                                                   {"tokenizer.model", pieces}});
  }
  const MemoryFile file(bytes);
  import_and_load(sources.at(type).path(), {}, [](const std::string& run) { load_run<LanguageRun>(run); });
}

}  // namespace qkv::fuzz
