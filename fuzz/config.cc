// config.json, training.json and the options of a server: a configuration that is accepted survives writing and
// reading.
#include "core/fields.h"
#include "fuzz/reader.h"
#include "io/runs/run_config.h"
#include "io/runs/translation_config.h"
#include "qkv/server.h"
#include "qkv/train.h"

namespace {

// The tokens that the configuration of a translator names, in a small vocabulary.
void look_up(const qkv::TranslationConfig& config) {
  static const auto pieces =
      qkv::Tokenizer::with_pieces({}, {"<unk>", "<s>", "</s>", "__de__", "__en__", "a"}, "<unk>", "");
  static const qkv::TokenizerPair tokenizers{pieces, pieces};
  const qkv::TranslationTokens tokens = qkv::tokens_of(config, tokenizers, "config.json");
  qkv::ids_without_text(config, pieces);
  for (const char* source : {"", "de", "__en__"})
    for (const char* target : {"", "de", "fr"}) qkv::fuzz::attempt([&] { qkv::edges_of(tokens, source, target); });
}

}  // namespace

void qkv::fuzz::fuzz_config(std::string_view bytes) {
  const std::string text(bytes);
  attempt([&] {
    const RunConfig config = parse_run_config(text, "config.json");
    require(config.format >= 1 && config.format <= kRunFormat, "the format is one that can be read");
    const RunConfig again = parse_run_config(json_from_fields(config), "again");
    require(again.kind == config.kind && again.model == config.model, "a run's configuration survives writing");
  });
  attempt([&] {
    TranslationConfig config;
    fields_from_json(config, text, "config.json", Missing::kept);
    look_up(config);
  });
  attempt([&] {
    TrainingConfig config, again;
    fields_from_json(config, text, "training.json", Missing::kept);
    check(config);
    fields_from_json(again, json_from_fields(config), "again", Missing::refused);
    require(again == config, "a training configuration survives writing");
  });
  attempt([&] {
    ServerOptions options;
    merge_server_json(options, text, "--config");
    check(options);
  });
  attempt([&] {
    TranslationRecipe recipe = translation_preset("tiny");
    merge_recipe_json(recipe, text, "--config");
  });
}
