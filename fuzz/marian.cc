// model.safetensors of a MarianMT directory.
#include "fuzz/import.h"

void qkv::fuzz::read(std::string_view bytes) {
  static const SourceDirectory source(
      "model.safetensors",
      {{"config.json",
        R"({"model_type": "marian", "vocab_size": 7, "encoder_layers": 2, "decoder_layers": 1, "d_model": 8,
            "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 12, "decoder_ffn_dim": 12,
            "activation_function": "swish", "scale_embedding": true, "max_position_embeddings": 32,
            "pad_token_id": 6, "decoder_start_token_id": 6, "eos_token_id": 0})"},
       {"vocab.json", R"({"</s>": 0, "<unk>": 1, "a": 2, "b": 3, "c": 4, ">>de<<": 5, "<pad>": 6})"}});
  const MemoryFile file(bytes);
  import_and_load(source.path(), {.tokens = true});
}
