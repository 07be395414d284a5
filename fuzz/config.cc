// config.json and training.json: a configuration that is accepted is written and read again as the same one.
#include "qkv/config.h"

#include "core/fields.h"
#include "fuzz/reader.h"
#include "qkv/train.h"

void qkv::fuzz::fuzz_config(std::string_view bytes) {
  const std::string text(bytes);
  attempt([&] {
    const ModelConfig config = model_config_from_json(text, "config.json");
    require(model_config_from_json(to_json(config), "again") == config, "a model's configuration survives writing");
  });
  attempt([&] {
    TrainingConfig config, again;
    fields_from_json(config, text, "training.json", Missing::refused);
    check(config);
    fields_from_json(again, json_from_fields(config), "again", Missing::refused);
    require(again == config, "a training configuration survives writing");
  });
  attempt([&] {
    TranslationRecipe recipe = translation_preset("tiny");
    merge_recipe_json(recipe, text, "--config");
  });
}
