// qkv train translate, recommend, lm, encoder, embed and classify: train a translator from parallel text, a recommender
// from a log, a language model or an encoder from plain text, an embedder or a classifier from rows of texts.
#include "qkv/train.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "commands.h"
#include "log_options.h"
#include "qkv/classifier_training.h"
#include "qkv/embedder_training.h"
#include "qkv/encoder.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "training.h"

namespace {

// Adds --out and --json.
void add_out_option(CLI::App& command, TrainedRun& run) {
  add_json_option(command, run);
  command.add_option("--out", run.out, "Run directory to write; an existing one is resumed")
      ->required()
      ->type_name("RUN");
}

// Adds --init, which takes the place of the preset.
void add_init_option(CLI::App& command, std::string& init, const std::string& kept) {
  command.add_option("--init", init, "Run to fine-tune: training starts from its weights and keeps its " + kept)
      ->excludes(command.get_option("--preset"))
      ->type_name("RUN");
}

// Returns the choice of the recipe: of a preset, or of a run to fine-tune.
template <class Options>
qkv::RecipeChoice choice_of(const Options& options) {
  qkv::RecipeChoice choice = options.recipe.choice();
  if (options.files.init.empty()) return choice;
  choice.preset.clear();
  choice.init = options.files.init;
  choice.out = options.run.out;
  return choice;
}

void add_translate(CLI::App& train) {
  CLI::App* command = train.add_subcommand("translate", "Train a translator from parallel text");
  struct Options {
    qkv::TranslationFiles files;
    RecipeOptions recipe;
    qkv::RankOptions ranks;
    TrainedRun run;
    uint64_t memory = 0;  // bytes; 0: not given
  };
  const auto options = std::make_shared<Options>();
  command
      ->add_option("--train", options->files.train,
                   "Training text: two line-aligned files, or one file of lines SOURCE tab TARGET")
      ->required()
      ->expected(1, 2)
      ->type_name("FILE [FILE]");
  command->add_option("--dev", options->files.dev, "Text for evaluation, in the same form")
      ->required()
      ->expected(1, 2)
      ->type_name("FILE [FILE]");
  add_out_option(*command, options->run);
  command
      ->add_option("--source-tokenizer", options->files.source_tokenizer,
                   "SentencePiece model of the source, or of both sides with a joint vocabulary; trained if not given")
      ->type_name("FILE")
      ->group("Data");
  command
      ->add_option("--target-tokenizer", options->files.target_tokenizer,
                   "SentencePiece model of the target; trained if not given")
      ->type_name("FILE")
      ->group("Data");
  add_threads_option(*command);
  add_rank_options(*command, options->ranks);
  CLI::Option* memory =
      command->add_option("--memory", options->memory,
                          "Choose the largest --batch-tokens with which training fits into this much, such as 4G");
  memory->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50))
      ->type_name("SIZE")
      ->group("Data");
  options->recipe.add_options(*command, qkv::kTranslationPreset, "tiny, tiny-modern, small or base",
                              qkv::recipe_options(qkv::translation_preset(qkv::kTranslationPreset)));
  options->recipe.option("batch_tokens")->excludes(memory);
  add_init_option(*command, options->files.init, "shape, tokenizers and special tokens");
  command->callback([options] {
    const auto recipe = qkv::translation_recipe(choice_of(*options));
    options->run.next = fmt::format("qkv translate {} < TEXT", options->run.out);
    show_training(options->run, recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_translator(options->files, recipe, options->run.out, observer,
                                   static_cast<int64_t>(options->memory), options->ranks);
    });
  });
}

void add_recommend(CLI::App& train) {
  CLI::App* command = train.add_subcommand("recommend", "Train a recommender from a log of users and items");
  struct Options {
    qkv::RecommendationFiles files;
    TrainedRun run;
    RecipeOptions recipe;
    qkv::RankOptions ranks;
  };
  const auto options = std::make_shared<Options>();
  command
      ->add_option("--data", options->files.data,
                   "Log: CSV, MovieLens (::), JSON lines, or lines USER ITEM in time order")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--columns", options->files.columns,
                   "Columns of user, item and time: names or numbers, such as 1,2,4")
      ->delimiter(',')
      ->type_name("NAMES");
  for (CLI::Option* option : add_log_options(*command, options->files)) option->group("Data");
  add_out_option(*command, options->run);
  command
      ->add_option("--init,--warm-start", options->files.init,
                   "Run whose weights training starts from; its items keep their ids (--warm-start is the old name)")
      ->type_name("RUN")
      ->group("Data");
  command
      ->add_option("--features", options->files.features,
                   "Table with categories and words of items, such as movies.csv")
      ->type_name("FILE")
      ->group("Data");
  command
      ->add_option("--feature-columns", options->files.feature_columns,
                   "Columns of that table: item and features, such as movieId,genres,title:words")
      ->delimiter(',')
      ->type_name("NAMES")
      ->group("Data");
  add_threads_option(*command);
  add_rank_options(*command, options->ranks);
  options->recipe.add_options(*command, qkv::kRecommendationPreset, "auto (fits the log), films or sasrec",
                              qkv::recipe_options(qkv::recommendation_preset(qkv::kRecommendationPreset)));
  command->footer(
      "Defaults are those of --preset auto before it chooses values that fit the log: those of the\n"
      "model's size, batches, loss, dropout, schedule and length of training that are not given.");
  command->callback([options] {
    const auto recipe = qkv::recommendation_recipe(options->recipe.choice());
    options->run.next = fmt::format("qkv recommend {} --history ITEM,ITEM", options->run.out);
    show_training(options->run, recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_recommender(options->files, recipe, options->run.out, observer, options->ranks);
    });
  });
}

// The options of training on plain text.
template <class Files>
struct PlainTextOptions {
  Files files;
  TrainedRun run;
  RecipeOptions recipe;
  qkv::RankOptions ranks;
};

// Adds them, but for those of the recipe. tokenizer: the help of --tokenizer-model.
template <class Files>
void add_plain_text_options(CLI::App& command, PlainTextOptions<Files>& options, const char* tokenizer) {
  command.add_option("--text", options.files.text, "Plain text to train on")->required()->type_name("FILE");
  command.add_option("--dev", options.files.dev, "Text for evaluation [default the end of the text]")
      ->type_name("FILE");
  command.add_option("--tokenizer-model", options.files.tokenizer, tokenizer)->type_name("FILE")->group("Data");
  add_out_option(command, options.run);
  add_threads_option(command);
  add_rank_options(command, options.ranks);
}

void add_lm(CLI::App& train) {
  CLI::App* command = train.add_subcommand("lm", "Train a language model from plain text");
  const auto options = std::make_shared<PlainTextOptions<qkv::LanguageFiles>>();
  add_plain_text_options(*command, *options, "SentencePiece model, for unit pieces; trained if not given");
  options->recipe.add_options(*command, qkv::kLanguagePreset, "lm-small, lm-med or gpt2",
                              qkv::recipe_options(qkv::language_preset(qkv::kLanguagePreset)));
  add_init_option(*command, options->files.init, "shape and tokenizer");
  command->callback([options] {
    const auto recipe = qkv::language_recipe(choice_of(*options));
    options->run.next = fmt::format("qkv generate {} --prompt TEXT", options->run.out);
    show_training(options->run, recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_language_model(options->files, recipe, options->run.out, observer, options->ranks);
    });
  });
}

void add_encoder(CLI::App& train) {
  CLI::App* command = train.add_subcommand("encoder", "Train an encoder from plain text, by masked tokens");
  const auto options = std::make_shared<PlainTextOptions<qkv::EncoderFiles>>();
  add_plain_text_options(*command, *options, "SentencePiece model with a piece <mask> or [MASK]; trained if not given");
  options->recipe.add_options(*command, qkv::kEncoderPreset, "encoder-tiny, bert-base or modernbert-base",
                              qkv::recipe_options(qkv::encoder_preset(qkv::kEncoderPreset)));
  add_init_option(*command, options->files.init, "shape and tokenizer");
  command->callback([options] {
    const auto recipe = qkv::encoder_recipe(choice_of(*options));
    options->run.next = fmt::format("qkv embed {} < TEXT", options->run.out);
    show_training(options->run, recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_encoder(options->files, recipe, options->run.out, observer, options->ranks);
    });
  });
}

// Returns the options without those that a command refuses.
std::vector<qkv::RecipeOption> without(std::vector<qkv::RecipeOption> options, std::set<std::string> refused) {
  std::erase_if(options, [&](const qkv::RecipeOption& option) { return refused.contains(option.name); });
  return options;
}

// The options of training on rows of texts.
template <class Files>
struct RowOptions {
  Files files;
  TrainedRun run;
  RecipeOptions recipe;
  qkv::RankOptions ranks;
};

// Adds them, but for those of the recipe. rows: the help of --train.
template <class Files>
void add_row_options(CLI::App& command, RowOptions<Files>& options, const char* rows) {
  Files& files = options.files;
  options.run.unit = "rows";
  command.add_option("--init", files.init, "Run to start from: an encoder, a classifier or a language model")
      ->required()
      ->type_name("RUN");
  command.add_option("--train", files.train, rows)->required()->type_name("FILE");
  command.add_option("--dev", files.dev, "Rows for evaluation [default some of the training rows]")->type_name("FILE");
  add_out_option(command, options.run);
  command
      .add_option("--columns", files.columns,
                  "Columns to read: names or numbers, such as query,answer or 1,3 [default usual names or all]")
      ->delimiter(',')
      ->type_name("NAMES");
  command.add_option("--dev-columns", files.dev_columns, "The same of the dev file [default those of --columns]")
      ->delimiter(',')
      ->type_name("NAMES")
      ->group("Data");
  add_threads_option(command);
  add_rank_options(command, options.ranks);
}

void add_embed(CLI::App& train) {
  CLI::App* command = train.add_subcommand("embed", "Train an embedder of texts from pairs, scores or a teacher");
  const auto options = std::make_shared<RowOptions<qkv::EmbedderFiles>>();
  add_row_options(*command, *options,
                  "Rows of texts, CSV, TSV or JSON lines: an anchor, a positive and negatives, or texts and a score");
  command
      ->add_option("--teacher", options->files.teacher,
                   "Run that embeds texts, or file of vectors (qkv embed --npy), which are learned (distillation)")
      ->type_name("RUN")
      ->group("Data");
  options->recipe.add_options(*command,
                              without(qkv::recipe_options(qkv::embedder_fine_tuning()), {"label_smoothing", "r_drop"}));
  command->callback([options] {
    const auto recipe = qkv::embedder_recipe(choice_of(*options));
    options->run.next = fmt::format("qkv embed {} < TEXT", options->run.out);
    show_training(options->run, recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_embedder(options->files, recipe, options->run.out, observer, options->ranks);
    });
  });
}

void add_classify(CLI::App& train) {
  CLI::App* command = train.add_subcommand("classify", "Train a classifier or a cross-encoder from labelled texts");
  const auto options = std::make_shared<RowOptions<qkv::ClassifierFiles>>();
  add_row_options(*command, *options, "Rows of one or two texts and a label, as CSV, TSV or JSON lines");
  options->recipe.add_options(*command,
                              without(qkv::recipe_options(qkv::classifier_fine_tuning()), {"r_drop"}));
  command->footer(
      "Defaults of dropout are those of the initial run. Without --warmup-steps, the learning rate rises for a tenth\n"
      "of the steps; with --max-steps and without --max-epochs, there is no limit of epochs.");
  command->callback([options] {
    const auto recipe = qkv::classifier_recipe(choice_of(*options));
    const qkv::LabelLoss loss = recipe.labels.loss;
    const bool orders = loss == qkv::LabelLoss::pairwise || loss == qkv::LabelLoss::listwise;
    options->run.next = orders ? fmt::format("qkv rerank {} --query TEXT < TEXTS", options->run.out)
                               : fmt::format("qkv classify {} < TEXT", options->run.out);
    show_training(options->run, recipe.training, [&](const qkv::TrainingObserver& observer) {
      return qkv::train_classifier(options->files, recipe, options->run.out, observer, options->ranks);
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
  add_encoder(*train);
  add_embed(*train);
  add_classify(*train);
}
