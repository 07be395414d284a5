// Evaluation of a run or a log: reads and splits it, and ranks items with the model and the baselines.
#include "qkv/evaluate.h"

#include <charconv>
#include <filesystem>
#include <optional>

#include "core/arena.h"
#include "core/fail.h"
#include "eval/baselines.h"
#include "eval/ranking.h"
#include "io/run.h"
#include "recommend/item_scores.h"

namespace qkv {
namespace {

constexpr int64_t kMostNegatives = 10'000;

HeldOut held_out(const RankingProtocol& protocol) { return protocol.validation ? HeldOut::validation : HeldOut::test; }

RankingTable start_table(const RankingProtocol& protocol, const Interactions& data, const std::string& sha256) {
  return {protocol, sha256, data.user_count(), data.item_count(), std::ssize(data.events), {}, {}};
}

// Adds the row of the model, if there is one, and those of the baselines.
void add_rows(RankingTable& table, const Interactions& data, const Split& split, const Negatives* negatives,
              ScoreItems model) {
  const HeldOut part = held_out(table.protocol);
  const auto add = [&](const char* name, ScoreItems score) {
    table.rows.push_back({name, rank_targets(data, {split, part, negatives, table.protocol.repeats}, score)});
  };
  if (model) add("model", model);
  add("popularity", Popularity(data, split, part));
  add("markov", Markov(data, split, part));
}

// Returns the negatives stored in the run. If there are none, draws new ones and stores them if the run is writable.
Negatives negatives_of_run(const RunDirectory& run, const SavedInteractions& log, const Split& split,
                           RankingTable& table) {
  const RankingProtocol& protocol = table.protocol;
  const std::string path = run.negatives(protocol.negatives, protocol.seed);
  if (std::filesystem::exists(path)) return load_negatives(path, log.data, protocol.negatives, log.sha256);
  Negatives negatives =
      draw_negatives(log.data, split, protocol.negatives, static_cast<uint64_t>(protocol.seed), protocol.repeats);
  try {
    save_negatives(path, negatives, log.sha256);
    table.messages.push_back(fmt::format("{}: stores the random items", path));
  } catch (const Error& error) {
    table.messages.push_back(fmt::format("the random items are not stored: {}", error.what()));
  }
  return negatives;
}

}  // namespace

RankingProtocol RankingProtocol::named(const std::string& name) {
  RankingProtocol protocol;
  if (name == "full") return protocol;
  if (name == "temporal") {
    protocol.temporal = true;
    return protocol;
  }
  const std::string prefix = "sampled-";
  if (name.starts_with(prefix)) {
    const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, protocol.negatives);
    if (error == std::errc() && stop == end && protocol.negatives >= 1 && protocol.negatives <= kMostNegatives)
      return protocol;
  }
  fail("protocol must be full, temporal or sampled-N with N between 1 and {} (is \"{}\")", kMostNegatives, name);
}

std::string RankingProtocol::name() const {
  if (negatives > 0) return fmt::format("sampled-{}", negatives);
  return temporal ? "temporal" : "full";
}

std::string RankingProtocol::description() const {
  const std::string target = temporal ? fmt::format("each user's first event of the {} {:g} % of the log",
                                                    validation ? "last but one" : "last", 100 * test_share)
                                      : fmt::format("each user's {} event", validation ? "last but one" : "last");
  const std::string among = negatives > 0
                                ? fmt::format("{} items drawn uniformly (seed {}){}", negatives, seed,
                                              repeats ? "" : " that the user's training part lacks")
                                : std::string(repeats ? "all items" : "all items but those of the user before it");
  return fmt::format("{}, among {}; ties count against the model", target, among);
}

std::string protocol_of_run(const std::string& directory) {
  const RunDirectory run(directory);
  expect_kind(run, read_config(run).kind, {RunKind::recommender});
  return read_recommendation(run).split == SplitRule::temporal ? "temporal" : "full";
}

RankingTable evaluate_run(const std::string& directory, RankingProtocol protocol) {
  const RecommenderRun run = load_run<RecommenderRun>(directory);
  const bool temporal = run.recommendation.split == SplitRule::temporal;
  if (protocol.temporal != temporal)
    fail("{}: protocol {} may test on events that the run was trained on: its split is {}", directory, protocol.name(),
         temporal ? "temporal" : "leave_one_out");
  protocol.repeats = run.recommendation.repeats;
  if (temporal) protocol.test_share = run.recommendation.test_share;
  const Interactions& data = run.log.data;
  RankingTable table = start_table(protocol, data, run.log.sha256);
  const Split split = Split::of(data, temporal, protocol.test_share);
  std::optional<Negatives> negatives;
  if (protocol.negatives > 0) negatives = negatives_of_run(RunDirectory(directory), run.log, split, table);
  Arena arena;
  add_rows(table, data, split, negatives ? &*negatives : nullptr, [&](Histories histories, Matrix<float> scores) {
    score_items(*run.model, run.recommendation.positions_from_end, histories, scores, arena);
  });
  return table;
}

RankingTable evaluate_logs(const std::vector<std::string>& logs, const InteractionOptions& options,
                           const RankingProtocol& protocol) {
  ReadReport report;
  const Interactions data = read_interactions(logs, options, report);
  RankingTable table = start_table(protocol, data, report.sha256);
  table.messages = report.lines();
  const Split split = Split::of(data, protocol.temporal, protocol.test_share);
  std::optional<Negatives> negatives;
  if (protocol.negatives > 0)
    negatives = draw_negatives(data, split, protocol.negatives, static_cast<uint64_t>(protocol.seed), protocol.repeats);
  add_rows(table, data, split, negatives ? &*negatives : nullptr, {});
  return table;
}

}  // namespace qkv
