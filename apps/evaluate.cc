// qkv evaluate: evaluates a recommender and two baselines, or the baselines alone, by a protocol; or a classifier or an
// embedder on a file of rows.
#include "qkv/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "log_options.h"
#include "options.h"
#include "program/lines/evaluation_text.h"
#include "qkv/error.h"
#include "qkv/text_evaluation.h"

namespace {

struct EvaluateCommand {
  std::vector<std::string> sources;
  std::string protocol;
  qkv::RankingProtocol values;  // without those that `protocol` names
  qkv::EvaluateOptions evaluate;
  bool json = false;
  qkv::InteractionOptions log;  // the columns are also those of rows
  std::string rows;
  qkv::TextEvaluationOptions texts;
  std::vector<CLI::Option*> of_logs, of_recommenders, of_texts;  // of which some may overlap
};

using Measures = std::vector<std::pair<std::string, double>>;

// Returns the columns of the table: for one target those that then say everything, otherwise also those that differ.
Measures columns(const qkv::RankingScore& score, int64_t next) {
  const std::vector<std::string> kinds = next > 1 ? std::vector<std::string>{"HR", "Recall", "NDCG", "MAP"}
                                                  : std::vector<std::string>{"HR", "NDCG", "MRR"};
  const Measures all = qkv::named_measures(score);
  Measures shown;
  const auto show = [&](const std::string& begin) {
    std::ranges::copy_if(all, std::back_inserter(shown),
                         [&](const auto& measure) { return measure.first.starts_with(begin); });
  };
  for (const std::string& kind : kinds) show(kind + "@");
  for (const char* name : {"coverage@10", "MIUF@10", "ARP@10"}) show(name);
  return shown;
}

// Returns the width of the column of names.
size_t name_width(const qkv::RankingTable& table) {
  size_t width = 12;
  for (const auto& row : table.rows) width = std::max(width, row.name.size());
  return width;
}

// Prints a line of the table. Numbers from 100 on have one decimal place.
void print_row(const std::string& name, size_t width, const Measures& measures) {
  fmt::print("\n{:<{}}", name, width);
  for (const auto& [column, value] : measures)
    fmt::print(" {:>{}.{}f}", value, std::max<size_t>(7, column.size()), value < 100 ? 4 : 1);
}

void print_header(size_t width, const Measures& measures) {
  fmt::print("{:<{}}", "", width);
  for (const auto& [column, value] : measures) fmt::print(" {:>7}", column);
}

void print_text(const qkv::RankingTable& table) {
  const qkv::RankingScore& counts = table.rows.front().score;
  const int64_t next = table.protocol.next;
  const size_t width = name_width(table);
  fmt::print("protocol: {}: {}\n", table.protocol.name(), table.protocol.description());
  fmt::print("data: {} users, {} items, {} events, sha256 {}\n", table.users, table.items, table.events,
             table.data_sha256);
  fmt::print("users: {} evaluated, {} without a target event, {} without events before it", counts.users,
             counts.no_target, counts.no_history);
  if (counts.not_sampled > 0)
    fmt::print(", {} not in the sample, which a hash of the users' names chooses", counts.not_sampled);
  if (counts.repeated > 0)
    fmt::print("\ntargets: {} are in the user's history, which is not recommended again: they count as misses",
               counts.repeated);
  fmt::print("\n\n");
  print_header(width, columns(counts, next));
  for (const auto& row : table.rows) print_row(row.name, width, columns(row.score, next));
  for (size_t i = 0; i < table.segments.size(); i++) {
    fmt::print("\n\n");
    const qkv::RankingScore& segment = table.rows.front().segments[i];
    fmt::print("segment {}: {} users", table.segments[i], segment.users);
    if (segment.users == 0) continue;
    for (const auto& row : table.rows) print_row(row.name, width, columns(row.segments[i], next));
  }
  fmt::print("\n");
}

void refuse(const std::vector<CLI::Option*>& options, const char* reason) {
  for (const CLI::Option* option : options)
    if (option->count() > 0) throw CLI::ValidationError(option->get_name(), reason);
}

// Whether a directory is a run, but not of a recommender.
bool is_of_texts(const std::filesystem::path& run) {
  return std::filesystem::exists(run / "config.json") && !std::filesystem::exists(run / "recommendation.json");
}

void evaluate_rows(const EvaluateCommand& options) {
  refuse(options.of_recommenders, "applies to recommenders only, not with --rows");
  if (options.sources.size() != 1) throw CLI::ValidationError("source", "must be one run with --rows");
  qkv::TextEvaluationOptions texts = options.texts;
  texts.columns = options.log.columns;
  const qkv::TextEvaluation result = qkv::evaluate_texts(options.sources[0], options.rows, texts);
  print_out(options.json ? qkv::to_json(result) + "\n" : qkv::to_text(result));
}

void evaluate(const EvaluateCommand& options) {
  if (!options.rows.empty()) return evaluate_rows(options);
  refuse(options.of_texts, "requires --rows");
  const bool is_run = options.sources.size() == 1 && std::filesystem::is_directory(options.sources[0]);
  if (is_run) refuse(options.of_logs, "applies to logs only; a run has its own");
  if (is_run && is_of_texts(options.sources[0]))
    throw qkv::Error(fmt::format("{}: is no recommender; set --rows to a file of rows to evaluate a model of texts",
                                 options.sources[0]));
  std::string name = options.protocol;
  if (name.empty()) name = is_run ? qkv::protocol_of_run(options.sources[0]) : "full";
  const qkv::RankingProtocol named = qkv::RankingProtocol::named(name);
  qkv::RankingProtocol protocol = options.values;
  protocol.split = named.split, protocol.negatives = named.negatives;
  const qkv::RankingTable table = is_run ? qkv::evaluate_run(options.sources[0], protocol, options.evaluate)
                                         : qkv::evaluate_logs(options.sources, options.log, protocol, options.evaluate);
  for (const std::string& line : table.messages) print_error("{}\n", line);
  if (options.json)
    fmt::print("{}\n", qkv::to_json(table));
  else
    print_text(table);
}

// Adds the options that apply to recommenders and logs.
void add_recommender_options(CLI::App& command, EvaluateCommand& options) {
  options.of_recommenders = {
      command.add_option(
          "--protocol", options.protocol,
          "full: leave-one-out, ranks all items; sampled-N: leave-one-out, ranks N random items; temporal: all events "
          "after a point in time, ranks all items; users: the last event of some users, ranks all items [default that "
          "of the run's split; of logs full]"),
      command.add_option("--seed", options.values.seed, "Seed of the random items of sampled-N")
          ->check(in_range(qkv::at_least(0)))
          ->capture_default_str(),
      command
          .add_option("--next", options.values.next,
                      "Number of targets: the first events of each user's held-out part; 0 is as many as the run holds "
                      "out, for logs 1")
          ->check(CLI::Range(0, 1000))
          ->capture_default_str(),
      command
          .add_option("--users", options.values.most_users,
                      "Evaluate at most this many users, a sample by a hash of their names; 0 is all [default as many "
                      "that users x items is at most 2e10, but at least 1000]")
          ->check(in_range(qkv::at_least(0))),
      command.add_option("--segments", options.evaluate.segments,
                         "Also score groups of users: length (of the history), popularity (of the target: head, "
                         "middle, tail), or a file with lines user,segment"),
      command.add_option("--lists", options.evaluate.lists,
                         "Write the 20 best items of each user to this file, as user,item,rank: those of the model, or "
                         "of popularity for logs"),
      command.add_flag("--validation", options.values.validation,
                       "Evaluate on the validation events instead of the test events")};
}

// Adds those of logs, of which --columns also applies to rows.
void add_options_of_logs(CLI::App& command, EvaluateCommand& options) {
  CLI::Option* columns =
      command.add_option("--columns", options.log.columns, "Columns of user, item and time: names or numbers")
          ->delimiter(',');
  options.of_logs = {
      command.add_option("--min-events", options.log.min_events, "Drop users with fewer events"),
      command.add_option("--core", options.log.core,
                         "Drop users and items with fewer events, repeatedly until none is left; 0 is off"),
      command.add_option("--test-share", options.values.test_share, "Share of all events in the test of temporal"),
      command.add_flag("--repeats", options.values.repeats, "Items that the user already had are candidates")};
  for (CLI::Option* option : add_log_options(command, options.log)) options.of_logs.push_back(option);
  options.of_recommenders.insert(options.of_recommenders.end(), options.of_logs.begin(), options.of_logs.end());
  options.of_logs.insert(options.of_logs.begin(), columns);
  for (CLI::Option* option : options.of_logs) option->group("Logs")->capture_default_str();
}

void add_options_of_texts(CLI::App& command, EvaluateCommand& options) {
  command
      .add_option("--rows", options.rows,
                  "Evaluate a classifier or an embedder on these rows: CSV, TSV or JSON lines, as for training, with "
                  "--columns")
      ->type_name("FILE")
      ->group("Texts");
  add_options(command, options.texts.placement);
  options.of_texts = {
      command.add_option("--label-separator", options.texts.label_separator,
                         "Text between several labels of a row; default: that of the run's training"),
      command.add_flag("--ranking", options.texts.ranking,
                       "Of a cross-encoder: measure how consecutive rows with the same first text are ranked"),
      command.get_option("--device"), command.get_option("--precision")};
  for (CLI::Option* option : options.of_texts) option->group("Texts");
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "evaluate", "Evaluate a recommender, with popularity and Markov-chain baselines, or a model of texts on rows");
  const auto options = std::make_shared<EvaluateCommand>();
  command->add_option("source", options->sources, "Run directory; or one or more logs, for the baselines alone")
      ->required();
  add_recommender_options(*command, *options);
  command->add_flag("--json", options->json, "Print as JSON");
  add_threads_option(*command);
  add_options_of_logs(*command, *options);
  add_options_of_texts(*command, *options);
  command->callback([options] { evaluate(*options); });
}
