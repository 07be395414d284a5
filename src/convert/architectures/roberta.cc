// RoBERTa and XLM-R: Liu et al., "RoBERTa: A Robustly Optimized BERT Pretraining Approach" (2019).
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "convert/families/bert_family.h"
#include "convert/text/encoder_text.h"
#include "core/fail.h"

namespace qkv {
namespace {

// Positions start after the padding token's id, so the table has that many rows that no text uses.
void roberta_fields(ConfigFields& fields, ModelConfig& m) {
  if (fields.to()) m.max_length += fields.to()->at("pad_token_id").get<int64_t>() + 1;
  bert_fields(fields, m, {});
}

void finish_roberta(const Settings& config, ModelConfig& m) {
  finish_bert(config, m, {});
  const int64_t first = first_roberta_position(config);
  if (m.max_length <= first)
    fail("{}: max_position_embeddings must be above {}, which pad_token_id asks for (is {})", config.where(), first,
         m.max_length);
  m.max_length -= first;
}

}  // namespace

namespace architectures {

const Architecture& roberta() {
  static const Architecture architecture = {
      .model_types = {"roberta", "xlm-roberta"},
      .name = "RoBERTa",
      .model_class = "RobertaModel",
      .base = bert_base(),
      .fields = roberta_fields,
      .finish = finish_roberta,
      .tensors =
          [](const ModelConfig& m, const Settings& config) {
            return bert_tensors(m, {.prefix = "roberta."}, first_roberta_position(config));
          },
      .head = [](const Settings&) { return roberta_head(); },
      .token_head = [](const ModelConfig&, const Settings&) { return roberta_token_head("roberta."); },
      .text =
          [](const TextSource& source) {
            return read_encoder_text(source, {"<s>", "</s>", "<unk>"}, "RobertaTokenizer");
          },
      .widen = widen_bert,
      .export_rank = -1,
      .padding = "<pad>",
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
