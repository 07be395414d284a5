// mBART: Liu et al., "Multilingual Denoising Pre-training for Neural Machine Translation" (2020). mBART-50: Tang et
// al., "Multilingual Translation with Extensible Multilingual Pretraining and Finetuning" (2020).
#include <algorithm>
#include <cctype>

#include "convert/families/bart_family.h"
#include "convert/text/translator_text.h"

namespace qkv {
namespace {

constexpr int64_t kFirstMbartPosition = 2;  // rows of the tables of positions that no text uses
constexpr const char* kMbartPieces = "sentencepiece.bpe.model";
constexpr const char* kMbartLanguages[] = {
    "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN", "hi_IN", "it_IT", "ja_XX", "kk_KZ",
    "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN"};
constexpr const char* kMoreOfMbart50[] = {"af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID",
                                          "ka_GE", "km_KH", "mk_MK", "ml_IN", "mn_MN", "mr_IN", "pl_PL",
                                          "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN", "te_IN", "th_TH",
                                          "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"};

// "en_XX".
bool is_mbart_language(const std::string& token) {
  const auto is = [&](size_t i, int (*kind)(int)) { return kind(static_cast<unsigned char>(token[i])) != 0; };
  return token.size() == 5 && token[2] == '_' && is(0, std::islower) && is(1, std::islower) && is(3, std::isupper) &&
         is(4, std::isupper);
}

// mBART-50 begins a source with its language and forces that of the target; mBART ends a source with its language, and
// its decoder starts from that of the target.
bool is_mbart50(const TextSource& source, const TranslationConfig& translation) {
  const std::string name = tokenizer_class_of(source);
  return name == "MBart50Tokenizer" || (name != "MBartTokenizer" && translation.start == translation.end);
}

ModelText read_mbart_text(const TextSource& source) {
  TranslatorPieces pieces = read_translator_pieces(source, kMbartPieces, fairseq_pieces);
  TranslationConfig languages;
  LanguageTokens tokens{is_mbart_language, [](const std::string& token) { return token.substr(0, 2); }};
  tokens.known.assign(std::begin(kMbartLanguages), std::end(kMbartLanguages));
  if (source.model.source_vocab > std::ssize(pieces.pieces) + std::ssize(kMbartLanguages) + 1)
    tokens.known.insert(tokens.known.end(), std::begin(kMoreOfMbart50), std::end(kMoreOfMbart50));
  add_languages(source, tokens, pieces, languages);
  TranslationConfig translation = read_translation_tokens(source, pieces.pieces);
  const bool fifty = is_mbart50(source, translation);
  translation.languages = std::move(languages.languages);
  translation.language_tokens = std::move(languages.language_tokens);
  translation.source_language = fifty ? SourceLanguage::before : SourceLanguage::after;
  translation.target_language = fifty ? TargetLanguage::first : TargetLanguage::start;
  translation.first.clear();
  return share_pieces(source, kMbartPieces, std::move(pieces), std::move(translation), fairseq_tokens());
}

}  // namespace

namespace architectures {

const Architecture& mbart() {
  static const Architecture architecture = {
      .model_types = {"mbart"},
      .name = "mBART and mBART-50",
      .model_class = "MBartForConditionalGeneration",
      .base =
          [] {
            ModelConfig m;
            m.positions = Positions::learned;
            m.embedding_norm = true;
            m.norm.position = NormPosition::pre;
            m.norm.final = true;
            return m;
          }(),
      .fields = bart_fields,
      .finish = finish_bart,
      .see_tensors = see_bart_bias,
      .tensors = [](const ModelConfig& m, const Settings&) { return bart_tensors(m, kFirstMbartPosition); },
      .text = read_mbart_text,
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
