// DistilBERT: Sanh et al., "DistilBERT, a distilled version of BERT" (2019).
#include "convert/architecture.h"
#include "convert/families/bert_family.h"
#include "convert/text/encoder_text.h"

namespace qkv {
namespace {

constexpr BertFields kDistilBertFields = {.layers = "n_layers",
                                          .width = "dim",
                                          .heads = "n_heads",
                                          .ffn = "hidden_dim",
                                          .activation = "activation",
                                          .dropout = "dropout",
                                          .attention_dropout = "attention_dropout",
                                          .token_types = false};
constexpr BertNames kDistilBertNames = {.prefix = "distilbert.",
                                        .layer = "transformer.layer.",
                                        .q = "attention.q_lin",
                                        .k = "attention.k_lin",
                                        .v = "attention.v_lin",
                                        .output = "attention.out_lin",
                                        .attention_norm = "sa_layer_norm",
                                        .first = "ffn.lin1",
                                        .second = "ffn.lin2",
                                        .norm = "output_layer_norm",
                                        .token_types = false};
constexpr double kEpsilon = 1e-12;  // of all norms, whatever config.json says

void finish_distilbert(const Settings& config, ModelConfig& m) {
  finish_bert(config, m, kDistilBertFields);
  m.norm.epsilon = kEpsilon;
}

TokenHeadRule distilbert_token_head(const ModelConfig& m, const Settings&) {
  return {.dense = "vocab_transform",
          .norm = "vocab_layer_norm",
          .embeddings = "distilbert.embeddings.word_embeddings.weight",
          .output = "vocab_projector.weight",
          .bias = "vocab_projector.bias",
          .activation = m.activation};
}

}  // namespace

namespace architectures {

const Architecture& distilbert() {
  static const Architecture architecture = {
      .model_types = {"distilbert"},
      .name = "DistilBERT",
      .model_class = "DistilBertModel",
      .base = bert_base(),
      .fields = [](ConfigFields& fields, ModelConfig& m) { bert_fields(fields, m, kDistilBertFields); },
      .finish = finish_distilbert,
      .tensors = [](const ModelConfig& m, const Settings&) { return bert_tensors(m, kDistilBertNames); },
      .head = [](const Settings&) { return HeadRule{.dense = "pre_classifier", .activation = HeadActivation::relu}; },
      .token_head = distilbert_token_head,
      .text = read_bert_text,
      .widen = widen_bert,
      .export_rank = 1,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
