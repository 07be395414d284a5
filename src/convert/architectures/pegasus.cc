// Pegasus: Zhang et al., "PEGASUS: Pre-training with Extracted Gap-sentences for Abstractive Summarization" (2020).
#include "convert/families/bart_family.h"
#include "convert/text/translator_text.h"
#include "convert/text/vocabulary_files.h"
#include "core/fail.h"

namespace qkv {
namespace {

constexpr const char* kPegasusPieces = "spiece.model";
constexpr int64_t kPegasusOffset = 103;  // ids before those of the SentencePiece model

// <pad>, </s>, <mask_1>, <mask_2>, <unk_2> … <unk_102>, and the pieces of the model from its third one, <unk>.
std::vector<std::string> pegasus_pieces(const SentencePieceFile& file) {
  constexpr int32_t kUnknown = 2;
  const Tokenizer tokenizer = Tokenizer::from_serialized(file.bytes, file.where);
  if (tokenizer.size() <= kUnknown || tokenizer.piece(kUnknown) != "<unk>")
    fail("{}: piece {} must be <unk>", file.where, kUnknown);
  std::vector<std::string> pieces = {"<pad>", "</s>", "<mask_1>", "<mask_2>"};
  for (int64_t i = 2; i < kPegasusOffset; i++) pieces.push_back(fmt::format("<unk_{}>", i));
  for (int32_t id = kUnknown; id < tokenizer.size(); id++) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

ModelText read_pegasus_text(const TextSource& source) {
  const int64_t offset = read_tokenizer_config(source.files).integer("offset", kPegasusOffset);
  if (offset != kPegasusOffset)
    fail("{}: offset must be {} (is {})", source.files.path("tokenizer_config.json"), kPegasusOffset, offset);
  TranslatorPieces pieces = read_translator_pieces(source, kPegasusPieces, pegasus_pieces);
  TranslationConfig translation = read_translation_tokens(source, pieces.pieces);
  ClassTokens special{std::vector<std::string>(pieces.pieces.begin(), pieces.pieces.begin() + kPegasusOffset)};
  special.all.push_back("<unk>");
  return share_pieces(source, kPegasusPieces, std::move(pieces), std::move(translation), std::move(special));
}

}  // namespace

namespace architectures {

const Architecture& pegasus() {
  static const Architecture architecture = {
      .model_types = {"pegasus"},
      .name = "Pegasus",
      .model_class = "PegasusForConditionalGeneration",
      .base =
          [] {
            ModelConfig m;
            m.positions = Positions::halves;
            m.norm.position = NormPosition::pre;
            m.norm.final = true;
            return m;
          }(),
      .fields = bart_fields,
      .finish = finish_bart,
      .see_tensors =
          [](ModelConfig& m, const Architecture::HasTensor& has) {
            see_bart_bias(m, has);
            see_bart_tables(m, has);
          },
      .tensors = [](const ModelConfig& m, const Settings&) { return bart_tensors(m); },
      .text = read_pegasus_text,
      .reads_whole_texts = true,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
