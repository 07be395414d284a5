#include "io/runs/translator_run.h"

#include <tuple>
#include <utility>

#include "core/fail.h"
#include "io/runs/run_config.h"
#include "io/runs/tokenizer_files.h"

namespace qkv {

TranslatorRun TranslatorRun::read(const RunDirectory& run, const ModelConfig& config) {
  if (!config.has_encoder() || !config.has_decoder())
    fail("{}: {} must be at least 1 in a translator (is 0)", run.config(),
         config.has_encoder() ? "decoder_layers" : "encoder_layers");
  const TranslationConfig translation = read_fields<TranslationConfig>(run, run.translation());
  TranslatorRun loaded{config, read_tokenizers(run, translation.unknown), translation};
  for (const auto& [side, tokenizer, vocab] : {std::tuple{"source", &loaded.tokenizers.source, config.source_vocab},
                                               {"target", &loaded.tokenizers.target, config.target_vocab}}) {
    if (vocab < tokenizer->size() || vocab > tokenizer->size() + kMaxPadding)
      fail("{}: {}_vocab must be {}, the number of pieces of the {} tokenizer, or at most {} more (is {})",
           run.config(), side, tokenizer->size(), side, kMaxPadding, vocab);
    *tokenizer = with_spelled(tokenizer->fitted(vocab, run.config()), translation.spelled, translation.strips_left,
                              translation.strips_right, run.translation());
  }
  loaded.tokens = tokens_of(translation, loaded.tokenizers, run.translation());
  Tokenizer& target = loaded.tokenizers.target;
  if (std::vector<int32_t> ids = ids_without_text(translation, target); !ids.empty())
    target = target.without_text(std::move(ids));
  return loaded;
}

void TranslatorRun::write(const RunDirectory& run) const {
  write_fields(run.translation(), translation);
  write_tokenizers(run, tokenizers);
}

}  // namespace qkv
