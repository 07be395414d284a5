// M2M100: Fan et al., "Beyond English-Centric Multilingual Machine Translation" (2020). NLLB: NLLB Team, "No Language
// Left Behind: Scaling Human-Centered Machine Translation" (2022).
#include <algorithm>

#include "import/bart_family.h"
#include "import/translator_text.h"
#include "import/vocabulary_files.h"

namespace qkv {
namespace {

constexpr const char* kM2mPieces = "sentencepiece.bpe.model";

// "__en__".
bool is_m2m_language(const std::string& token) {
  return token.size() > 4 && token.starts_with("__") && token.ends_with("__");
}

// "eng_Latn".
bool is_nllb_language(const std::string& token) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return token.size() == 8 && token[3] == '_' && token[4] >= 'A' && token[4] <= 'Z' &&
         std::all_of(token.begin(), token.begin() + 3, lower) && std::all_of(token.begin() + 5, token.end(), lower);
}

// M2M100 has a list of pieces next to its SentencePiece model; NLLB has the order of fairseq.
ModelText read_m2m_text(const TextSource& source) {
  const ModelFiles& files = source.files;
  const bool m2m = files.has("vocab.json");
  std::vector<std::string> pieces =
      m2m ? parse_piece_ids(files.open_small("vocab.json")->text(), files.path("vocab.json"))
          : fairseq_pieces(SentencePieceFile::read(files.path(kM2mPieces)));
  TranslationConfig languages;
  LanguageTokens tokens{is_nllb_language, [](const std::string& token) { return token; }};
  if (m2m)
    tokens = {.is_language = is_m2m_language,
              .code_of = [](const std::string& token) { return token.substr(2, token.size() - 4); },
              .mask = false};
  add_languages(source, tokens, pieces, languages);
  TranslationConfig translation = read_translation_tokens(source, pieces);
  const bool after = read_tokenizer_config(files).flag("legacy_behaviour", false);
  translation.languages = std::move(languages.languages);
  translation.language_tokens = std::move(languages.language_tokens);
  translation.source_language = after ? SourceLanguage::after : SourceLanguage::before;
  translation.target_language = TargetLanguage::first;
  translation.first.clear();
  return share_pieces(source, kM2mPieces, std::move(pieces), std::move(translation));
}

}  // namespace

namespace architectures {

const Architecture& m2m_100() {
  static const Architecture architecture = {
      .model_types = {"m2m_100"},
      .name = "M2M100 and NLLB",
      .model_class = "M2M100ForConditionalGeneration",
      .base =
          [] {
            ModelConfig m;
            m.positions = Positions::second_halves;
            m.norm.position = NormPosition::pre;
            m.norm.final = true;
            return m;
          }(),
      .fields = bart_fields,
      .finish = finish_bart,
      .tensors = [](const ModelConfig& m, const Settings&) { return bart_tensors(m); },
      .text = read_m2m_text,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
