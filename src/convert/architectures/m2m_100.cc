// M2M100: Fan et al., "Beyond English-Centric Multilingual Machine Translation" (2020). NLLB: NLLB Team, "No Language
// Left Behind: Scaling Human-Centered Machine Translation" (2022).
#include <algorithm>
#include <span>

#include "convert/families/bart_family.h"
#include "convert/text/translator_text.h"
#include "convert/text/vocabulary_files.h"
#include "core/fail.h"
#include "core/json.h"

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

constexpr const char* kM2mLanguages[] = {
    "af", "am", "ar", "ast", "az", "ba",  "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy", "da", "de",
    "el", "en", "es", "et",  "fa", "ff",  "fi", "fr", "fy", "ga", "gd", "gl", "gu",  "ha", "he", "hi", "hr",
    "ht", "hu", "hy", "id",  "ig", "ilo", "is", "it", "ja", "jv", "ka", "kk", "km",  "kn", "ko", "lb", "lg",
    "ln", "lo", "lt", "lv",  "mg", "mk",  "ml", "mn", "mr", "ms", "my", "ne", "nl",  "no", "ns", "oc", "or",
    "pa", "pl", "ps", "pt",  "ro", "ru",  "sd", "si", "sk", "sl", "so", "sq", "sr",  "ss", "su", "sv", "sw",
    "ta", "th", "tl", "tn",  "tr", "uk",  "ur", "uz", "vi", "wo", "xh", "yi", "yo",  "zh", "zu"};
constexpr const char* kWmt21Languages[] = {"en", "ha", "is", "ja", "cs", "ru", "zh", "de"};

// The tokens of the languages that M2M100Tokenizer has by itself.
std::vector<std::string> class_languages(const Settings& tokenizer) {
  const std::string codes = tokenizer.text("language_codes", "m2m100");
  if (codes != "m2m100" && codes != "wmt21")
    fail("{}: language_codes must be m2m100 or wmt21 (is {})", tokenizer.where(), excerpt(codes));
  const std::span<const char* const> languages =
      codes == "m2m100" ? std::span<const char* const>(kM2mLanguages) : std::span<const char* const>(kWmt21Languages);
  std::vector<std::string> tokens;
  for (const char* code : languages) tokens.push_back(fmt::format("__{}__", code));
  return tokens;
}

// M2M100 has a list of pieces next to its SentencePiece model; NLLB has the order of fairseq.
ModelText read_m2m_text(const TextSource& source) {
  const ModelFiles& files = source.files;
  const bool m2m = files.has("vocab.json");
  TranslatorPieces pieces =
      m2m ? TranslatorPieces{parse_piece_ids(files.open_small("vocab.json")->text(), files.path("vocab.json"))}
          : read_translator_pieces(source, kM2mPieces, fairseq_pieces);
  TranslationConfig languages;
  LanguageTokens tokens{is_nllb_language, [](const std::string& token) { return token; }};
  if (m2m)
    tokens = {.is_language = is_m2m_language,
              .code_of = [](const std::string& token) { return token.substr(2, token.size() - 4); },
              .known = class_languages(read_tokenizer_config(files)),
              .mask = false};
  add_languages(source, tokens, pieces, languages);
  TranslationConfig translation = read_translation_tokens(source, pieces.pieces);
  const bool after = read_tokenizer_config(files).flag("legacy_behaviour", false);
  translation.languages = std::move(languages.languages);
  translation.language_tokens = std::move(languages.language_tokens);
  translation.source_language = after ? SourceLanguage::after : SourceLanguage::before;
  translation.target_language = TargetLanguage::first;
  translation.first.clear();
  ClassTokens special = m2m ? ClassTokens{{"<s>", "<pad>", "</s>", "<unk>"}} : fairseq_tokens();
  return share_pieces(source, kM2mPieces, std::move(pieces), std::move(translation), std::move(special));
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
