// qkv train translate: a translation model from parallel text. qkv train recommend: a recommender from a log. qkv train
// lm: a language model from plain text.
#include "qkv/train.h"

#include <memory>

#include "commands.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "training.h"

namespace {

void add_translate(CLI::App& train) {
  CLI::App* command = train.add_subcommand("translate", "Train a translation model from parallel text");
  struct Options {
    qkv::TranslationFiles files;
    RecipeChoice choice;
    std::string out;
    uint64_t memory = 0;  // bytes; 0: batch_tokens stands
  };
  const auto options = std::make_shared<Options>();
  command->add_option("--train", options->files.train, "Training text: SOURCE TARGET files, or one TSV file")
      ->required()
      ->expected(1, 2);
  command->add_option("--dev", options->files.dev, "Text to evaluate on, in the same form")->required()->expected(1, 2);
  command->add_option("--out", options->out, "Run directory; one that is there is resumed")->required();
  command->add_option("--source-tokenizer", options->files.source_tokenizer,
                      "Existing SentencePiece model (of both sides with a joint vocabulary)");
  command->add_option("--target-tokenizer", options->files.target_tokenizer, "Existing SentencePiece model");
  add_threads_option(*command);
  CLI::Option* memory = command->add_option(
      "--memory", options->memory, "Choose the largest --batch-tokens for so much, whatever --config says: 512M, 4G");
  memory->transform(CLI::AsSizeValue(false))->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50))->type_name("SIZE");
  options->choice.add_options(*command, "tiny", "tiny, tiny-modern, small or base",
                              qkv::recipe_options(qkv::translation_preset("tiny")));
  options->choice.option("batch_tokens")->excludes(memory);
  command->callback([options] {
    const auto recipe = options->choice.recipe(qkv::translation_preset);
    run_training(recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_translation(options->files, recipe, options->out, observer,
                                    static_cast<int64_t>(options->memory));
    });
  });
}

void add_recommend(CLI::App& train) {
  CLI::App* command = train.add_subcommand("recommend", "Train a recommender from a log of who did what");
  struct Options {
    qkv::RecommendationFiles files;
    std::string out;
    RecipeChoice choice;
  };
  const auto options = std::make_shared<Options>();
  command
      ->add_option("--data", options->files.data,
                   "Log: CSV, MovieLens ::, JSON lines, or \"user item\" lines in time order")
      ->required();
  command
      ->add_option("--columns", options->files.columns,
                   "Where user, item and time stand: names or numbers, such as 1,2,4")
      ->delimiter(',');
  command->add_option("--out", options->out, "Run directory; one that is there is resumed")->required();
  command->add_option("--warm-start", options->files.warm_start,
                      "Run whose weights are the start; its items keep their ids, new ones follow");
  command->add_option("--features", options->files.features,
                      "Table of the items' categories and words, such as movies.csv");
  command
      ->add_option("--feature-columns", options->files.feature_columns,
                   "Its columns of the item and of features: names or numbers, such as movieId,genres,title:words")
      ->delimiter(',');
  add_threads_option(*command);
  options->choice.add_options(*command, "films", "films or sasrec",
                              qkv::recipe_options(qkv::recommendation_preset("films")));
  command->callback([options] {
    const auto recipe = options->choice.recipe(qkv::recommendation_preset);
    run_training(recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_recommendation(options->files, recipe, options->out, observer);
    });
  });
}

void add_lm(CLI::App& train) {
  CLI::App* command = train.add_subcommand("lm", "Train a language model from plain text");
  struct Options {
    qkv::LanguageFiles files;
    std::string out;
    RecipeChoice choice;
  };
  const auto options = std::make_shared<Options>();
  command->add_option("--text", options->files.text, "Plain text to learn from")->required();
  command->add_option("--dev", options->files.dev, "Text to evaluate on (default: the end of the text)");
  command->add_option("--tokenizer-model", options->files.tokenizer,
                      "Existing SentencePiece model, for --unit pieces (default: trained from the text)");
  command->add_option("--out", options->out, "Run directory; one that is there is resumed")->required();
  add_threads_option(*command);
  options->choice.add_options(*command, "lm-small", "lm-small, lm-med or gpt2",
                              qkv::recipe_options(qkv::language_preset("lm-small")));
  command->callback([options] {
    const auto recipe = options->choice.recipe(qkv::language_preset);
    run_training(recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_language(options->files, recipe, options->out, observer);
    });
  });
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "Train a model");
  train->require_subcommand(1);
  add_translate(*train);
  add_recommend(*train);
  add_lm(*train);
}
