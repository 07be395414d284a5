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
                                          .attention_dropout = "attention_dropout"};
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

}  // namespace

namespace architectures {

const Architecture& distilbert() {
  static const Architecture architecture = {
      .model_types = {"distilbert"},
      .name = "DistilBERT",
      .model_class = "DistilBertModel",
      .base = bert_base(),
      .fields = [](ConfigFields& fields, ModelConfig& m) { bert_fields(fields, m, kDistilBertFields); },
      .finish = [](const Settings& config, ModelConfig& m) { finish_bert(config, m, kDistilBertFields); },
      .tensors = [](const ModelConfig& m, const Settings&) { return bert_tensors(m, kDistilBertNames); },
      .head = [](const Settings&) { return HeadRule{.dense = "pre_classifier", .activation = HeadActivation::relu}; },
      .text = read_bert_text,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
