// BART: Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation, Translation,
// and Comprehension" (2019).
#include "convert/families/bart_family.h"
#include "convert/text/translator_text.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kFirstBartPosition = 2;  // rows of the tables of positions that no text uses

ModelText read_bart_text(const TextSource& source) {
  TextCodec codec = read_text_codec(source.files, "BartTokenizer");
  Tokenizer tokenizer =
      codec.unit() == TextUnit::pieces ? codec.tokenizer() : Tokenizer::of_hugging_face(codec.hugging_face_tokenizer());
  std::vector<std::string> pieces;
  for (int32_t id = 0; id < tokenizer.size(); id++) pieces.push_back(tokenizer.piece(id));
  TranslationConfig translation = read_translation_tokens(source, pieces);
  if (!tokenizer.hugging_face()) tokenizer = tokenizer.fitted(source.model.source_vocab, source.files.path());
  if (const auto before = codec.before()) translation.source_start = pieces[to_size(*before)];
  if (source.config.flag("force_bos_token_to_be_generated", false) && translation.first.empty())  // in old files
    translation.first = translation.source_start;
  override_tokens(translation, source.options);
  return TranslatorText{{tokenizer, tokenizer}, std::move(translation)};
}

}  // namespace

namespace architectures {

const Architecture& bart() {
  static const Architecture architecture = {
      .model_types = {"bart"},
      .name = "BART",
      .model_class = "BartForConditionalGeneration",
      .base =
          [] {
            ModelConfig m;
            m.positions = Positions::learned;
            m.embedding_norm = true;
            return m;
          }(),
      .fields = bart_fields,
      .finish = finish_bart,
      .see_tensors = see_bart_bias,
      .tensors = [](const ModelConfig& m, const Settings&) { return bart_tensors(m, kFirstBartPosition); },
      .text = read_bart_text,
      .reads_whole_texts = true,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
