// BERT: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding" (2019).
#include "convert/architecture.h"
#include "convert/families/bert_family.h"
#include "convert/text/encoder_text.h"

namespace qkv {
namespace architectures {

const Architecture& bert() {
  static const Architecture architecture = {
      .model_types = {"bert"},
      .name = "BERT",
      .model_class = "BertModel",
      .base = bert_base(),
      .fields = [](ConfigFields& fields, ModelConfig& m) { bert_fields(fields, m, {}); },
      .finish = [](const Settings& config, ModelConfig& m) { finish_bert(config, m, {}); },
      .tensors = [](const ModelConfig& m, const Settings&) { return bert_tensors(m, {}); },
      .head = [](const Settings&) { return bert_head("bert.pooler.dense"); },
      .token_head = [](const ModelConfig& m, const Settings&) { return bert_token_head(m); },
      .text = read_bert_text,
      .widen = widen_bert,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
