// MarianMT, the models of OPUS-MT: Junczys-Dowmunt et al., "Marian: Fast Neural Machine Translation in C++" (2018).
#include "convert/architecture.h"
#include "convert/families/bart_family.h"
#include "convert/families/decoder_parts.h"
#include "convert/text/marian_text.h"

namespace qkv {
namespace {

void marian_fields(ConfigFields& fields, ModelConfig& m) {
  bart_fields(fields, m);
  fields("decoder_vocab_size", m.target_vocab, m.source_vocab);
  fields("share_encoder_decoder_embeddings", m.shared_embeddings, true);
}

}  // namespace

namespace architectures {

const Architecture& marian() {
  static const Architecture architecture = {
      .model_types = {"marian"},
      .name = "MarianMT",
      .model_class = "MarianMTModel",
      .base =
          [] {
            ModelConfig m;
            m.positions = Positions::halves;
            m.output_bias = true;
            return m;
          }(),
      .fields = marian_fields,
      .finish = finish_bart,
      // Files of old versions, and exported ones, hold the sinusoids as tables, and the tables are what counts.
      .see_tensors = see_bart_tables,
      .tensors = [](const ModelConfig& m, const Settings&) { return bart_tensors(m); },
      .text = read_marian_text,
      .widen =
          [](ModelConfig& m) {
            add_biases(m);
            m.output_bias = true;
            if (positions_are_added(m) && m.positions != Positions::halves) m.positions = Positions::learned;
          },
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
