// MPNet: Song et al., "MPNet: Masked and Permuted Pre-training for Language Understanding" (2020). A BERT without token
// types, with the relative position bias of T5 in addition to its positions.
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "convert/families/bert_family.h"
#include "convert/text/encoder_text.h"
#include "core/fail.h"

namespace qkv {
namespace {

constexpr int64_t kMpnetBuckets = 32;
constexpr int64_t kMpnetFirstPosition = 2;  // after the padding token's id, which is always 1
constexpr BertNames kMpnetNames = {.prefix = "mpnet.",
                                   .q = "attention.attn.q",
                                   .k = "attention.attn.k",
                                   .v = "attention.attn.v",
                                   .output = "attention.attn.o",
                                   .attention_norm = "attention.LayerNorm",
                                   .token_types = false};

void finish_mpnet(const Settings& config, ModelConfig& m) {
  finish_bert(config, m, {});
  if (m.attention.relative_buckets != kMpnetBuckets)
    fail("{}: relative_attention_num_buckets must be {} (is {})", config.where(), kMpnetBuckets,
         m.attention.relative_buckets);
  if (m.max_length <= kMpnetFirstPosition)
    fail("{}: max_position_embeddings must be above {} (is {})", config.where(), kMpnetFirstPosition, m.max_length);
  m.max_length -= kMpnetFirstPosition;
}

// The class takes every padding token for the one with id 1.
void start_positions(const nlohmann::json& written, ModelConfig& m) {
  const int64_t padding = written.at("pad_token_id").get<int64_t>();
  if (padding != kMpnetFirstPosition - 1)
    fail("<pad> must have id {} in MPNet (is {})", kMpnetFirstPosition - 1, padding);
  m.max_length += kMpnetFirstPosition;
}

}  // namespace

namespace architectures {

const Architecture& mpnet() {
  static const Architecture architecture = {
      .model_types = {"mpnet"},
      .name = "MPNet",
      .model_class = "MPNetModel",
      .base = bert_base(),
      .fields =
          [](ConfigFields& fields, ModelConfig& m) {
            if (fields.to()) start_positions(*fields.to(), m);
            bert_fields(fields, m, {.token_types = false});
            fields("relative_attention_num_buckets", m.attention.relative_buckets, kMpnetBuckets);
          },
      .finish = finish_mpnet,
      .tensors =
          [](const ModelConfig& m, const Settings&) {
            TensorMap map = bert_tensors(m, kMpnetNames, kMpnetFirstPosition);
            map.add_module(
                {.theirs = "mpnet.encoder.relative_attention_bias", .ours = {"encoder.relative_bias"}, .bias = false});
            return map;
          },
      .head = [](const Settings&) { return roberta_head(); },
      .token_head = [](const ModelConfig&, const Settings&) { return roberta_token_head("mpnet."); },
      .text =
          [](const TextSource& source) {
            return read_encoder_text(source, {"<s>", "</s>", "[UNK]"}, "MPNetTokenizer");
          },
      .widen = widen_bert,
      .padding = "<pad>",
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
