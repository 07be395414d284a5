// config.json and training.json: a configuration that is accepted survives writing and reading.
#include "core/fields.h"
#include "fuzz/reader.h"
#include "io/run_config.h"
#include "qkv/train.h"

void qkv::fuzz::fuzz_config(std::string_view bytes) {
  const std::string text(bytes);
  attempt([&] {
    const RunConfig config = parse_run_config(text, "config.json", RunKind::translator);
    require(config.format >= 0 && config.format <= kRunFormat, "the format is one that can be read");
    const RunConfig again = parse_run_config(json_from_fields(config), "again", {});
    require(again.kind == config.kind && again.model == config.model, "a run's configuration survives writing");
  });
  attempt([&] {
    TrainingConfig config, again;
    fields_from_json(config, text, "training.json", Missing::kept);
    check(config);
    fields_from_json(again, json_from_fields(config), "again", Missing::refused);
    require(again == config, "a training configuration survives writing");
  });
  attempt([&] {
    TranslationRecipe recipe = translation_preset("tiny");
    merge_recipe_json(recipe, text, "--config");
  });
}
