// qkv train translate: a translation model from parallel text.
#include "qkv/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>

#include "commands.h"
#include "qkv/error.h"

namespace {

std::atomic<bool> interrupted = false;

struct TrainOptions {
  qkv::TranslationFiles files;
  std::string preset = "tiny", config, out;
  uint64_t memory = 0;                                          // bytes; 0: batch_tokens stands
  std::vector<std::pair<std::string, CLI::Option*>> overrides;  // by the recipe's name for them
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw qkv::Error(fmt::format("{}: cannot be read", path));
  return text;
}

// The preset, then the configuration file, then the options of the command line.
qkv::Recipe recipe_of(const TrainOptions& options) {
  qkv::Recipe recipe = qkv::preset(options.preset);
  if (!options.config.empty()) qkv::merge_recipe_json(recipe, read_file(options.config), options.config);
  for (const auto& [name, option] : options.overrides) {
    if (option->count() == 0) continue;
    const std::string value = option->results().empty() ? "" : option->results().back();
    qkv::set_recipe_option(recipe, name, value.empty() ? "true" : value);
  }
  return recipe;
}

std::string duration(double seconds) {
  const long s = static_cast<long>(seconds);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

// One line that is redrawn on a terminal; elsewhere a plain line now and then.
class ProgressLine {
 public:
  explicit ProgressLine(const qkv::TrainingConfig& limits) : limits_(limits), terminal_(isatty(STDERR_FILENO) == 1) {}

  void message(const std::string& line) {
    clear();
    fmt::print(stderr, "{}\n", line);
  }

  void step(const qkv::StepReport& r) {
    tokens_ += static_cast<double>(r.target_tokens);
    if (first_seconds_ < 0) first_seconds_ = r.seconds, first_step_ = r.step, tokens_ = 0;
    const double since = r.seconds - shown_;
    if (shown_ >= 0 && since < (terminal_ ? 0.2 : 10.0)) return;
    shown_ = r.seconds;
    const double elapsed = r.seconds - first_seconds_;
    const double speed = elapsed > 0 ? tokens_ / elapsed : r.tokens_per_second;
    const std::string line = fmt::format("step {}  epoch {}  loss {:.3f}  lr {:.2e}  {:.0f} tokens/s  {}{}", r.step,
                                         r.epoch, r.loss, r.learning_rate, speed, duration(r.seconds), eta(r, elapsed));
    if (terminal_) {
      fmt::print(stderr, "\r{}\033[K", line);
      drawn_ = true;
    } else {
      fmt::print(stderr, "{}\n", line);
    }
  }

  void evaluation(const qkv::EvaluationReport& r) {
    std::string line = fmt::format("step {}  dev:", r.step);
    for (const auto& c : r.candidates)
      line += fmt::format("  {} loss {:.3f} perplexity {:.2f} BLEU {:.2f}", c.name, c.loss, c.perplexity, c.bleu);
    message(line + (r.improved ? "  (best so far: " + r.best + ")" : ""));
  }

  void clear() {
    if (drawn_) fmt::print(stderr, "\r\033[K");
    drawn_ = false;
  }

 private:
  // To the first limit of steps or minutes.
  std::string eta(const qkv::StepReport& r, double elapsed) const {
    double left = -1;
    const double steps = static_cast<double>(r.step - first_step_);
    if (limits_.max_steps > 0 && steps > 0) left = elapsed / steps * static_cast<double>(limits_.max_steps - r.step);
    if (limits_.max_minutes > 0) {
      const double minutes_left = 60 * limits_.max_minutes - r.seconds;
      left = left < 0 ? minutes_left : std::min(left, minutes_left);
    }
    return left < 0 ? "" : ", " + duration(left) + " left";
  }

  const qkv::TrainingConfig limits_;
  bool terminal_, drawn_ = false;
  double shown_ = -1, first_seconds_ = -1, tokens_ = 0;
  int64_t first_step_ = 0;
};

void train(const TrainOptions& options) {
  const qkv::Recipe recipe = recipe_of(options);
  ProgressLine progress(recipe.training);
  qkv::TrainingObserver observer;
  observer.on_message = [&](const std::string& line) { progress.message(line); };
  observer.on_step = [&](const qkv::StepReport& r) { progress.step(r); };
  observer.on_evaluation = [&](const qkv::EvaluationReport& r) { progress.evaluation(r); };
  observer.should_stop = [] { return interrupted.load(); };
  // The first signal ends training after the present step, with the state saved; the second ends the program.
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, [](int number) {
      interrupted = true;
      std::signal(number, SIG_DFL);
    });
  bool ended = false;
  try {
    ended = qkv::train_translation(options.files, recipe, options.out, observer, static_cast<int64_t>(options.memory));
  } catch (...) {
    progress.clear();
    throw;
  }
  progress.clear();
  if (!ended) throw Interrupted();
}

std::string option_name(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* train_app = app.add_subcommand("train", "Train a model");
  train_app->require_subcommand(1);
  CLI::App* command = train_app->add_subcommand("translate", "Train a translation model from parallel text");
  const auto options = std::make_shared<TrainOptions>();
  command->add_option("--train", options->files.train, "Training text: SOURCE TARGET files, or one TSV file")
      ->required()
      ->expected(1, 2);
  command->add_option("--dev", options->files.dev, "Text to evaluate on, in the same form")->required()->expected(1, 2);
  command->add_option("--out", options->out, "Run directory; one that is there is resumed")->required();
  command->add_option("--preset", options->preset, "tiny, small or base")->capture_default_str();
  command->add_option("--config", options->config, "JSON file of any of the values below");
  command->add_option("--source-tokenizer", options->files.source_tokenizer,
                      "Existing SentencePiece model (of both sides with a joint vocabulary)");
  command->add_option("--target-tokenizer", options->files.target_tokenizer, "Existing SentencePiece model");
  add_threads_option(*command);
  CLI::Option* memory = command->add_option(
      "--memory", options->memory, "Choose the largest --batch-tokens for so much, whatever --config says: 512M, 4G");
  memory->transform(CLI::AsSizeValue(false))->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50))->type_name("SIZE");
  for (const qkv::RecipeOption& o : qkv::recipe_options(qkv::preset("tiny"))) {
    const bool yes_no = o.value == "true" || o.value == "false";  // --lowercase alone means true
    CLI::Option* option = command->add_option_function<std::string>(
        option_name(o.name), [](const std::string&) {}, fmt::format("{} [{}]", o.help, o.value));
    option->group("Recipe [values of --preset tiny]")->type_name("")->expected(yes_no ? 0 : 1, 1)->take_last();
    options->overrides.emplace_back(o.name, option);
    if (o.name == "batch_tokens") option->excludes(memory);
  }
  command->callback([options] { train(*options); });
}
