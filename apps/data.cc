// qkv data check and qkv data clean: examine and filter training data.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "log_options.h"
#include "options.h"
#include "program/corpus/corpus.h"
#include "sentences.h"

namespace {

using Files = std::vector<std::string>;

void print_text(const char* name, const qkv::PairReport& text) {
  if (text.files.empty()) return;
  print_out(fmt::format("{}: {}\n  {} pairs, {} pass all filters\n", name, fmt::join(text.files, ", "), text.pairs,
                        text.kept));
  for (const qkv::Defect& defect : text.defects)
    if (defect.pairs > 0)
      print_out(fmt::format("  {:>9}  {:<9}  {}, the first in line {}\n", defect.pairs, defect.name, defect.meaning,
                            defect.first_line));
  if (text.spaces > 0)
    print_out(fmt::format("  {} of the rest have spaces or control characters to clean\n", text.spaces));
  if (text.several > 0)
    print_out(fmt::format("  {} of the rest have a source that occurred with another target\n", text.several));
  print_out(fmt::format("  mean length: {:.1f} and {:.1f} words, {:.1f} and {:.1f} characters\n", text.source_words,
                        text.target_words, text.source_characters, text.target_characters));
}

void print_advice(const std::vector<std::string>& advice) {
  if (!advice.empty()) print_out("\nAdvice:\n");
  for (const std::string& line : advice) print_out("- " + line + "\n");
}

void print_report(const qkv::CorpusReport& report, bool json) {
  if (json) return print_out(qkv::to_json(report) + "\n");
  print_text("training text", report.train);
  print_text("dev text", report.dev);
}

struct TextOptions {
  Files train, dev, out;
  qkv::PairFilters filters;
  bool json = false;
};

// Adds --train and --dev, as of qkv train translate.
CLI::Option* add_text_options(CLI::App& command, TextOptions& options) {
  CLI::Option* train = command.add_option(
      "--train", options.train, "Training text: two line-aligned files, or one file of lines SOURCE tab TARGET");
  train->expected(1, 2)->type_name("FILE [FILE]");
  command.add_option("--dev", options.dev, "Text for evaluation, in the same form")
      ->expected(1, 2)
      ->type_name("FILE [FILE]")
      ->needs(train);
  return train;
}

struct CheckOptions : TextOptions {
  Files logs;
  qkv::InteractionOptions log;
};

void check_text(const CheckOptions& options) {
  const qkv::CorpusReport report = qkv::check_corpus(options.train, options.dev, options.filters);
  print_report(report, options.json);
  if (!options.json) print_advice(qkv::advice_for(report));
}

void check_logs(const CheckOptions& options) {
  const qkv::ReadReport report = qkv::check_logs(options.logs, options.log);
  if (options.json) return print_out(qkv::to_json(report) + "\n");
  for (const std::string& line : report.lines()) print_out(line + "\n");
  print_advice(qkv::advice_for(report));
}

void add_check(CLI::App& data) {
  CLI::App* command = data.add_subcommand("check", "Report defects of parallel text, or of a log of users and items");
  const auto options = std::make_shared<CheckOptions>();
  CLI::Option* train = add_text_options(*command, *options);
  CLI::Option* logs =
      command->add_option("--data", options->logs, "Log of a recommender: CSV, MovieLens (::), JSON lines, or others");
  logs->type_name("FILE")->excludes(train);
  command->add_option("--columns", options->log.columns, "Columns of user, item and time of the log: names or numbers")
      ->delimiter(',')
      ->type_name("NAMES")
      ->needs(logs);
  for (CLI::Option* option : add_log_options(*command, options->log)) option->needs(logs);
  command->add_flag("--json", options->json, "Print as JSON");
  add_options(*command, options->filters);
  command->callback([options] {
    if (options->train.empty() && options->logs.empty()) throw CLI::RequiredError("--train or --data");
    if (options->logs.empty())
      check_text(*options);
    else
      check_logs(*options);
  });
}

void add_clean(CLI::App& data) {
  CLI::App* command = data.add_subcommand("clean", "Write the pairs of parallel text that pass the filters");
  const auto options = std::make_shared<TextOptions>();
  add_text_options(*command, *options)->required();
  command->add_option("--out", options->out, "Files to write, as many as the training text has")
      ->required()
      ->expected(1, 2)
      ->type_name("FILE [FILE]");
  command->add_flag("--json", options->json, "Print as JSON");
  add_options(*command, options->filters);
  command->callback([options] {
    print_report(qkv::clean_corpus(options->train, options->out, options->dev, options->filters), options->json);
  });
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Check and clean training data, split text into sentences");
  data->require_subcommand(1);
  add_check(*data);
  add_clean(*data);
  add_sentences_command(*data);
  add_abbreviations_command(*data);
}
