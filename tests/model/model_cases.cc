#include "tests/model/model_cases.h"

namespace qkv::testing {

Batch sample_batch(const ModelConfig& config, const ItemInputs& items) {
  return random_batch(config, std::vector<int64_t>{5, 1, 3}, std::vector<int64_t>{4, 2, 1}, 7, items);
}

std::vector<Case> cases() {
  ModelConfig post = small_config();
  post.dropout.residual = 0.2;
  post.dropout.attention = 0.15;
  post.dropout.ffn = 0.25;

  ModelConfig pre = post;
  pre.norm.position = NormPosition::pre;
  pre.norm.final = true;
  pre.activation = Activation::gelu;
  pre.shared_embeddings = false;
  pre.source_vocab = 11;
  pre.tied_output = false;
  pre.output_bias = true;

  ModelConfig silu = post;
  silu.activation = Activation::silu;
  silu.norm.final = true;
  silu.shared_embeddings = false;
  silu.attention.input_bias = silu.attention.output_bias = false;
  silu.output_bias = true;
  silu.encoder_layers = 1;
  silu.dropout.residual = silu.dropout.attention = silu.dropout.ffn = 0;

  ModelConfig learned = post;
  learned.positions = Positions::learned;
  learned.embedding_norm = true;
  learned.zero_start = true;
  learned.scale_embeddings = false;

  ModelConfig query = pre;
  query.norm.position = NormPosition::query;

  ModelConfig alone = post;
  alone.encoder_layers = alone.source_vocab = 0;
  alone.shared_embeddings = false;
  ModelConfig alone_query = query;
  alone_query.encoder_layers = alone_query.source_vocab = 0;
  alone_query.positions = Positions::learned;
  ModelConfig gaps = alone_query;
  gaps.embedding_norm = true;

  ModelConfig rotary = post;
  rotary.positions = Positions::rotary;
  rotary.attention.key_width = 4;
  ModelConfig alone_rotary = alone_query;
  alone_rotary.positions = Positions::rotary;
  alone_rotary.attention.key_width = 4;

  // Options newer than the paper: those of Llama, and the others.
  ModelConfig modern = post;
  modern.encoder_layers = modern.source_vocab = 0;
  modern.shared_embeddings = false;
  modern.norm.kind = NormKind::rms;
  modern.norm.position = NormPosition::pre;
  modern.norm.final = true;
  modern.positions = Positions::rotary;
  modern.rotary.base = 100;
  modern.rotary.scale = 2;
  modern.attention.heads = 4;
  modern.attention.key_value_heads = 2;
  modern.attention.key_width = 4;
  modern.activation = Activation::silu;
  modern.gated_ffn = true;
  modern.ffn_bias = modern.attention.input_bias = modern.attention.output_bias = false;
  ModelConfig capped = pre;
  capped.norm.kind = NormKind::layer_no_bias;
  capped.positions = Positions::alibi;
  capped.attention.heads = 3;
  capped.attention.key_value_heads = 1;
  capped.attention.key_width = 8;  // a norm of fewer numbers bends too much for finite differences
  capped.attention.softcap = 1.5;
  capped.attention.scale = 0.4;
  capped.attention.window = 2;
  capped.attention.query_key_norm = true;
  capped.gated_ffn = true;
  capped.activation = Activation::gelu_tanh;
  ModelConfig alone_capped = capped;
  alone_capped.encoder_layers = alone_capped.source_vocab = 0;
  ModelConfig placeless = modern;
  placeless.positions = Positions::none;
  placeless.attention.window = 3;
  placeless.attention.query_key_norm = true;
  placeless.norm.position = NormPosition::query;

  // GPT-NeoX and Phi: part of each head is rotated, and the sublayers run in parallel.
  ModelConfig neox = alone_rotary;
  neox.norm.position = NormPosition::pre;
  neox.sublayers = Sublayers::parallel;
  neox.attention.key_width = 7;
  neox.rotary.width = 4;
  ModelConfig phi = neox;
  phi.sublayers = Sublayers::parallel_shared_norm;
  phi.attention.heads = 4;
  phi.attention.key_value_heads = 2;
  phi.rotary.width = 2;
  phi.activation = Activation::gelu_tanh;

  // T5: a relative bias instead of positions. MPNet: in addition to them.
  ModelConfig t5 = pre;
  t5.norm.kind = NormKind::rms;
  t5.positions = Positions::none;
  t5.attention.scale = 1;
  t5.attention.relative_buckets = 7;
  t5.attention.relative_distance = 4;
  t5.attention.input_bias = t5.attention.output_bias = t5.ffn_bias = false;
  t5.gated_ffn = true;
  t5.activation = Activation::gelu_tanh;
  ModelConfig relative = alone_capped;
  relative.attention.relative_buckets = 4;
  relative.attention.relative_distance = 30;
  relative.positions = Positions::learned;
  // OLMo 2, Gemma 2 and 3, SmolLM 3, ModernBERT: other places of norms, and layers that differ.
  ModelConfig branch = modern;
  branch.norm.position = NormPosition::branch;
  branch.attention.query_key_norm = branch.attention.query_key_norm_over_heads = true;
  ModelConfig sandwich = rotary;
  sandwich.norm.position = NormPosition::sandwich;
  sandwich.norm.final = true;
  sandwich.encoder_layers = sandwich.decoder_layers = 3;
  sandwich.attention.window = 2;
  sandwich.attention.layer_pattern = "gln";
  sandwich.rotary.local_base = 50;
  sandwich.rotary.scale = 3;
  sandwich.output_softcap = 1.5;
  ModelConfig alone_sandwich = sandwich;
  alone_sandwich.encoder_layers = alone_sandwich.source_vocab = 0;
  alone_sandwich.shared_embeddings = false;
  ModelConfig first = alone_sandwich;
  first.norm.position = NormPosition::pre;
  first.norm.first = false;
  first.embedding_norm = true;
  first.attention.layer_pattern = "lg";

  ModelConfig halves = post;
  halves.positions = Positions::closed_halves;

  // ALBERT: projected embeddings, shared layers, token types.
  ModelConfig projected = learned;
  projected.embedding_width = 8;  // a norm of fewer numbers bends too much for finite differences
  projected.token_types = 3;
  projected.shared_layers = true;
  projected.encoder_layers = 3;
  projected.tied_output = false;
  ModelConfig alone_projected = alone_rotary;
  alone_projected.embedding_width = 9;
  alone_projected.shared_layers = true;

  // Encoders that predict masked tokens: BERT, ModernBERT and ALBERT.
  ModelConfig bert = learned;
  bert.decoder_layers = bert.target_vocab = 0;
  bert.shared_embeddings = bert.zero_start = false;
  bert.token_head = TokenHead::dense;
  bert.output_bias = true;
  bert.activation = Activation::gelu;
  ModelConfig masked = first;
  masked.encoder_layers = 3;
  masked.source_vocab = 13;
  masked.decoder_layers = masked.target_vocab = 0;
  masked.token_head = TokenHead::output;
  masked.tied_output = false;
  ModelConfig albert = projected;
  albert.decoder_layers = albert.target_vocab = 0;
  albert.shared_embeddings = albert.zero_start = albert.ffn_bias = false;
  albert.token_head = TokenHead::dense;
  albert.tied_output = true;
  return {{"post-norm, relu, one table", post},
          {"pre-norm, gelu, three tables", pre},
          {"silu, no biases", silu},
          {"learned positions, a norm after them, no start embedding", learned},
          {"positions in halves", halves},
          {"query-norm", query},
          {"decoder only", alone},
          {"decoder only, query-norm", alone_query},
          {"time gaps, a norm after them", gaps, {.gap_buckets = 4}},
          {"rotary positions", rotary},
          {"decoder only, query-norm, rotary positions", alone_rotary},
          {"decoder only, RMSNorm, SwiGLU, shared keys, scaled rotary positions", modern},
          {"ALiBi, softcap, window, norms of queries and keys, a gate", capped},
          {"decoder only, the same", alone_capped},
          {"decoder only, no positions, query-norm, norms of queries and keys", placeless},
          {"a relative bias, no positions, unscaled scores", t5},
          {"decoder only, a relative bias with learned positions, softcap and window", relative},
          {"parallel sublayers, partly rotated heads", neox},
          {"parallel sublayers with one norm, partly rotated shared keys", phi},
          {"norms of branches and of all queries and keys", branch},
          {"norms around sublayers, three kinds of layers, an output softcap", sandwich},
          {"decoder only, the same, an output softcap", alone_sandwich},
          {"no norm before the first layer, two kinds of layers", first},
          {"projected embeddings, token types, shared layers", projected},
          {"decoder only, projected embeddings, shared layers", alone_projected},
          {"encoder only, a head like BERT's", bert},
          {"encoder only, an output layer with a table of its own, an output softcap", masked},
          {"encoder only, a head that maps to projected embeddings", albert}};
}

}  // namespace qkv::testing
