// qkv evaluate: evaluates a recommender and two baselines, or the baselines alone, by a protocol.
#include "qkv/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"

namespace {

struct EvaluateOptions {
  std::vector<std::string> sources;
  std::string protocol;
  int64_t seed = 1;
  double test_share = 0.1;
  bool validation = false, repeats = false, json = false;
  qkv::InteractionOptions log;
  std::array<CLI::Option*, 5> of_logs{};
};

// Returns "HR@5", …: the columns of the table and the names in JSON.
std::vector<std::pair<std::string, double>> metrics(const qkv::RankingScore& score) {
  std::vector<std::pair<std::string, double>> named;
  const std::pair<const char*, const std::array<double, 3>*> kinds[] = {
      {"HR", &score.hr}, {"NDCG", &score.ndcg}, {"MRR", &score.mrr}};
  for (const auto& [name, values] : kinds)
    for (size_t i = 0; i < values->size(); i++)
      named.emplace_back(fmt::format("{}@{}", name, qkv::kCutoffs[i]), (*values)[i]);
  named.emplace_back("coverage@10", score.coverage);
  return named;
}

void print_json(const qkv::RankingTable& table) {
  nlohmann::ordered_json json = {
      {"protocol", table.protocol.name()},
      {"description", table.protocol.description()},
      {"part", table.protocol.validation ? "validation" : "test"},
      {"data",
       {{"sha256", table.data_sha256}, {"users", table.users}, {"items", table.items}, {"events", table.events}}}};
  const qkv::RankingScore& counts = table.rows.front().score;
  json["users"] = counts.users;
  json["users_without_target"] = counts.no_target;
  json["users_without_history"] = counts.no_history;
  for (const auto& [row, score] : table.rows)
    for (const auto& [name, value] : metrics(score)) (row == "model" ? json : json["baselines"][row])[name] = value;
  fmt::print("{}\n", json.dump());
}

void print_text(const qkv::RankingTable& table) {
  const qkv::RankingScore& counts = table.rows.front().score;
  fmt::print("protocol: {}: {}\n", table.protocol.name(), table.protocol.description());
  fmt::print("data: {} users, {} items, {} events, sha256 {}\n", table.users, table.items, table.events,
             table.data_sha256);
  fmt::print("users: {} evaluated, {} without a target event, {} without events before it\n\n", counts.users,
             counts.no_target, counts.no_history);
  fmt::print("{:<12}", "");
  for (const auto& [name, value] : metrics(counts)) fmt::print(" {:>7}", name);
  for (const auto& [row, score] : table.rows) {
    fmt::print("\n{:<12}", row);
    for (const auto& [name, value] : metrics(score)) fmt::print(" {:>{}.4f}", value, std::max<size_t>(7, name.size()));
  }
  fmt::print("\n");
}

void evaluate(const EvaluateOptions& options) {
  const bool is_run = options.sources.size() == 1 && std::filesystem::is_directory(options.sources[0]);
  if (is_run)
    for (const CLI::Option* option : options.of_logs)
      if (option->count() > 0)
        throw CLI::ValidationError(option->get_name(), "applies to logs only; a run has its own");
  std::string name = options.protocol;
  if (name.empty()) name = is_run ? qkv::protocol_of_run(options.sources[0]) : "full";
  qkv::RankingProtocol protocol = qkv::RankingProtocol::named(name);
  protocol.seed = options.seed;
  protocol.test_share = options.test_share;
  protocol.validation = options.validation;
  protocol.repeats = options.repeats;
  const qkv::RankingTable table = is_run ? qkv::evaluate_run(options.sources[0], protocol)
                                         : qkv::evaluate_logs(options.sources, options.log, protocol);
  for (const std::string& line : table.messages) fmt::print(stderr, "{}\n", line);
  if (options.json)
    print_json(table);
  else
    print_text(table);
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("evaluate", "Evaluate a recommender; also prints popularity and Markov-chain baselines");
  const auto options = std::make_shared<EvaluateOptions>();
  command->add_option("source", options->sources, "Run directory; or one or more logs, for the baselines alone")
      ->required();
  command->add_option(
      "--protocol", options->protocol,
      "full: leave-one-out, ranks all items; sampled-N: leave-one-out, ranks N random items; temporal: all events "
      "after a point in time, ranks all items [default that of the run's split; of logs full]");
  command->add_option("--seed", options->seed, "Seed of the random items of sampled-N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--validation", options->validation,
                    "Evaluate on the validation events instead of the test events");
  command->add_flag("--json", options->json, "Print as JSON");
  add_threads_option(*command);
  options->of_logs = {
      command->add_option("--columns", options->log.columns, "Columns of user, item and time: names or numbers")
          ->delimiter(','),
      command->add_option("--min-events", options->log.min_events, "Drop users with fewer events"),
      command->add_option("--core", options->log.core,
                          "Drop users and items with fewer events, repeatedly until none is left; 0 is off"),
      command->add_option("--test-share", options->test_share, "Share of all events in the test of temporal"),
      command->add_flag("--repeats", options->repeats, "Items that the user already had are candidates")};
  for (CLI::Option* option : options->of_logs) option->group("Logs")->capture_default_str();
  command->callback([options] { evaluate(*options); });
}
