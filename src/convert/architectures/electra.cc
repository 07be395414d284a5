// ELECTRA: Clark et al., "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators" (2020).
#include "convert/architecture.h"
#include "convert/families/bert_family.h"
#include "convert/text/encoder_text.h"

namespace qkv {
namespace {

void electra_fields(ConfigFields& fields, ModelConfig& m) {
  bert_fields(fields, m, {});
  if (fields.to() && m.embedding_width == 0) m.embedding_width = m.d_model;
  fields("embedding_size", m.embedding_width, 128);
}

// Embeddings are projected only if they have another width than the layers.
void finish_electra(const Settings& config, ModelConfig& m) {
  finish_bert(config, m, {});
  if (m.embedding_width == m.d_model) m.embedding_width = 0;
}

HeadRule electra_head(const Settings&) {
  return {.dense = "classifier.dense",
          .output = "classifier.out_proj",
          .activation = HeadActivation::gelu,
          .token_types = true};
}

// The head of the generator, whose activation is always the exact GELU.
TokenHeadRule electra_token_head(const ModelConfig&, const Settings&) {
  return {.dense = "generator_predictions.dense",
          .norm = "generator_predictions.LayerNorm",
          .embeddings = "electra.embeddings.word_embeddings.weight",
          .output = "generator_lm_head.weight",
          .bias = "generator_lm_head.bias",
          .activation = Activation::gelu};
}

}  // namespace

namespace architectures {

const Architecture& electra() {
  static const Architecture architecture = {
      .model_types = {"electra"},
      .name = "ELECTRA",
      .model_class = "ElectraModel",
      .base = bert_base(),
      .fields = electra_fields,
      .finish = finish_electra,
      .tensors =
          [](const ModelConfig& m, const Settings&) {
            return bert_tensors(m, {.prefix = "electra.", .projection = "embeddings_project"});
          },
      .head = electra_head,
      .token_head = electra_token_head,
      .text = read_bert_text,
      .widen = widen_bert,
      .export_rank = 1,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
