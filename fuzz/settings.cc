// The small files of imported models: settings and lists of tokens.
#include "convert/architecture.h"
#include "convert/text/translator_text.h"
#include "convert/text/vocabulary_files.h"
#include "fuzz/reader.h"
#include "text/pieces/vocabulary.h"

namespace {

// The configuration of an architecture, its tensors, with none and with all of the optional ones, and its head.
void read_model(const qkv::Architecture& architecture, const qkv::Settings& settings) {
  constexpr int64_t kFewLayers = 8;
  const qkv::ModelConfig config = read_config(architecture, settings);
  check(config);
  if (config.encoder_layers + config.decoder_layers > kFewLayers) return;
  for (const bool has : {false, true}) {
    qkv::ModelConfig seen = config;
    if (architecture.see_tensors) architecture.see_tensors(seen, [&](const std::string&) { return has; });
    architecture.tensors(seen, settings);
  }
  if (architecture.head) architecture.head(settings);
}

}  // namespace

void qkv::fuzz::fuzz_settings(std::string_view bytes) {
  for (const Architecture* architecture : all_architectures())
    attempt([&] { read_model(*architecture, Settings(bytes, "config.json")); });
  attempt([&] { read_bad_words(Settings(bytes, "config.json")); });
  attempt([&] { Vocabulary(parse_piece_ids(bytes, "vocab.json"), "vocab.json"); });
  attempt([&] { Vocabulary(pieces_from_lines(bytes, "vocabulary.txt"), "vocabulary.txt"); });
  attempt([&] { added_tokens_of(Settings(bytes, "tokenizer_config.json")); });
  attempt([&] {
    const std::vector<std::string> pieces = pieces_from_json(bytes, "vocabulary.json");
    require(pieces_from_json(pieces_to_json(pieces), "again") == pieces, "a list of tokens survives writing");
  });
}
