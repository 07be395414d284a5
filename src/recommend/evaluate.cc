// Evaluation of a run or a log: reads and splits it, and ranks items with the model and the baselines.
#include "qkv/evaluate.h"

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/arena.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "eval/baselines.h"
#include "eval/rankers.h"
#include "eval/ranking.h"
#include "eval/transition_fit.h"
#include "io/atomic_file.h"
#include "io/runs/run.h"
#include "recommend/model_ranker.h"
#include "text/lines.h"

namespace qkv {
namespace {

constexpr int64_t kMostNegatives = 10'000;
constexpr int64_t kMostNext = 1000;
constexpr int64_t kMostPairs = 20'000'000'000;  // users × items, unless most_users is given

RankingTable start_table(const RankingProtocol& protocol, const Interactions& data, const std::string& sha256) {
  return {protocol, sha256, data.user_count(), data.item_count(), std::ssize(data.events), {}, {}, {}};
}

std::optional<Segments> segments_of(const std::string& segments, const Interactions& data, const Split& split,
                                    HeldOut part, const ItemCounts& counts) {
  if (segments.empty()) return {};
  if (segments == "length") return segments_by_length(data, split, part);
  if (segments == "popularity") return segments_by_popularity(data, split, part, counts);
  return read_segments(segments, data);
}

// A file of lines user,item,rank.
class ListFile {
 public:
  ListFile(const std::string& path, const Interactions& data) : data_(data), file_(path) {
    file_.write("user,item,rank\n");
  }

  void add(int64_t user, std::span<const ScoredToken> list) {
    std::string lines;
    for (size_t i = 0; i < list.size(); i++)
      lines += fmt::format("{},{},{}\n", csv_field(data_.users[to_size(user)]),
                           csv_field(data_.items[to_size(list[i].token)]), i + 1);
    file_.write(lines);
  }

  void commit() { file_.commit(); }

 private:
  const Interactions& data_;
  AtomicFile file_;
};

// Returns transitions whose shape fits the validation.
TransitionConfig transitions_for(const Interactions& data, const Split& split, bool repeats) {
  Transitions counted =
      count_transitions(data, split, HeldOut::validation, {.kept = kept_successors(data.item_count())});
  fit_shape(data, split, repeats, counted);
  return counted.config();
}

// Adds rows to a table, each a ranking of the same targets.
class Rows {
 public:
  Rows(RankingTable& table, const Interactions& data, const Split& split, const Negatives* negatives,
       const EvaluateOptions& options)
      : table_(table),
        data_(data),
        part_(table.protocol.validation ? HeldOut::validation : HeldOut::test),
        split_(split),
        counts_(data, split, part_),
        segments_(segments_of(options.segments, data, split, part_, counts_)),
        lists_(options.lists) {
    const RankingProtocol& protocol = table.protocol;
    ranking_ = {split,         part_,
                negatives,     protocol.repeats,
                protocol.next, protocol.most_users < 0 ? users_for(data.item_count(), kMostPairs) : protocol.most_users,
                &counts_,      segments_ ? &*segments_ : nullptr};
    if (segments_) table.segments = segments_->names;
  }

  void add(const char* name, ItemRanker& ranker) {
    std::optional<ListFile> file;
    const auto write = [&](int64_t user, std::span<const ScoredToken> list) { file->add(user, list); };
    RankingOptions options = ranking_;
    if (table_.rows.empty() && !lists_.empty()) {
      file.emplace(lists_, data_);
      options.on_list = write;
    }
    SegmentedScore score = rank_segments(data_, options, ranker);
    if (file) file->commit();
    table_.rows.push_back({name, score.all, std::move(score.segments)});
  }

  // transitions: how they are counted, or nothing for none.
  void add_model(const Transformer<float>& model, bool positions_from_end,
                 const std::optional<TransitionConfig>& transitions) {
    Arena arena;
    const std::shared_ptr<const InferenceEngine> engine = make_host_inference(model);
    ModelRanker alone(*engine, positions_from_end, arena);
    if (!transitions || transitions->weight == 0) return add("model", alone);
    const Transitions counted = count_transitions(data_, split_, part_, *transitions);
    const auto append = [&](const History& history, std::vector<ScoredToken>& added) {
      for (const auto& [item, score] : counted.scores(history.items)) added.push_back({score, item});
    };
    ModelRanker with(*engine, positions_from_end, arena, append);
    add("model", with);
    add("model without transitions", alone);
  }

  void add_baselines(const std::optional<TransitionConfig>& transitions) {
    rank_baselines(data_, split_, part_, [&](const char* name, ItemRanker& ranker) { add(name, ranker); });
    if (!transitions) return;
    const TransitionsAlone alone(data_, split_, part_, *transitions);
    const auto scores = [&](const History& history, std::vector<ScoredToken>& changed) {
      alone.append_next(history, changed);
    };
    SparseRanker by_transitions(alone.popularity(), scores);
    add("transitions", by_transitions);
  }

 private:
  RankingTable& table_;
  const Interactions& data_;
  const HeldOut part_;
  const Split& split_;
  const ItemCounts counts_;
  const std::optional<Segments> segments_;
  const std::string& lists_;
  RankingOptions ranking_;
};

// Returns the targets of a temporal split in words.
std::string target_of_period(const RankingProtocol& protocol) {
  return fmt::format("each user's first {} of the {} {:g} % of the log",
                     protocol.next > 1 ? fmt::format("{} events", protocol.next) : "event",
                     protocol.validation ? "last but one" : "last", 100 * protocol.test_share);
}

// Returns the targets of leave-one-out in words.
std::string target_of_last(const RankingProtocol& protocol) {
  const int64_t holdout = std::max(protocol.holdout, protocol.next);
  if (holdout <= 1) return fmt::format("each user's {} event", protocol.validation ? "last but one" : "last");
  const std::string held_out = protocol.validation ? fmt::format("the {0} events before each user's last {0}", holdout)
                                                   : fmt::format("each user's last {} events", holdout);
  if (protocol.next == holdout) return held_out;
  return fmt::format("the first{} of {}", protocol.next > 1 ? fmt::format(" {}", protocol.next) : "", held_out);
}

Split split_of(const RankingProtocol& protocol, const Interactions& data) {
  Split split = Split::of(data, protocol.split, protocol.test_share);
  split.holdout = protocol.holdout;
  return split;
}

void check_next(int64_t next) {
  if (next < 0 || next > kMostNext) fail("next must be between 0 and {} (is {})", kMostNext, next);
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

// Returns the protocol that ranks all items for the targets of a split.
std::string name_of_protocol(SplitRule rule) {
  return rule == SplitRule::leave_one_out ? "full" : std::string(name_of(rule));
}

// Describes the targets in a few words.
std::string target_of(const RankingProtocol& protocol) {
  if (protocol.split == SplitRule::temporal) return target_of_period(protocol);
  if (protocol.split == SplitRule::users)
    return fmt::format("the last event of the users held out for {}", protocol.validation ? "validation" : "test");
  return target_of_last(protocol);
}

}  // namespace

RankingProtocol RankingProtocol::named(const std::string& name) {
  RankingProtocol protocol;
  if (name == "full") return protocol;
  for (const SplitRule rule : {SplitRule::temporal, SplitRule::users})
    if (name == name_of(rule)) {
      protocol.split = rule;
      return protocol;
    }
  const std::string prefix = "sampled-";
  if (name.starts_with(prefix)) {
    const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, protocol.negatives);
    if (error == std::errc() && stop == end && protocol.negatives >= 1 && protocol.negatives <= kMostNegatives)
      return protocol;
  }
  fail("protocol must be full, temporal, users or sampled-N with N between 1 and {} (is \"{}\")", kMostNegatives, name);
}

std::string RankingProtocol::name() const {
  if (negatives > 0) return fmt::format("sampled-{}", negatives);
  return name_of_protocol(split);
}

std::string RankingProtocol::description() const {
  const std::string target = target_of(*this);
  const std::string among = negatives > 0
                                ? fmt::format("{} items drawn uniformly (seed {}){}", negatives, seed,
                                              repeats ? "" : " that the user's training part lacks")
                                : std::string(repeats ? "all items" : "all items but those of the user before it");
  return fmt::format("{}, among {}; ties count against the model", target, among);
}

std::string protocol_of_run(const std::string& directory) {
  const RunDirectory run(directory);
  expect_kind(run, read_config(run).kind, {RunKind::recommender});
  return name_of_protocol(read_recommendation(run).split);
}

RankingTable evaluate_run(const std::string& directory, RankingProtocol protocol, const EvaluateOptions& options) {
  check_next(protocol.next);
  const RecommenderRun run = load_run<RecommenderRun>(directory);
  const RecommendationConfig& config = run.recommendation;
  const bool temporal = config.split == SplitRule::temporal;
  if (protocol.split != config.split)
    fail("{}: protocol {} may test on events that the run was trained on: its split is {}", directory, protocol.name(),
         name_of(config.split));
  protocol.repeats = config.repeats;
  if (temporal) protocol.test_share = config.test_share;
  protocol.holdout = config.split == SplitRule::users ? 1 : config.holdout;
  if (protocol.next == 0) protocol.next = protocol.holdout;
  if (!temporal && protocol.next > protocol.holdout)
    fail("{}: next must be at most {}, the events that the run holds out of each user (is {}); train with holdout {}",
         directory, protocol.holdout, protocol.next, protocol.next);
  const Interactions& data = run.log.data;
  RankingTable table = start_table(protocol, data, run.log.sha256);
  const Split split = split_of(protocol, data);
  std::optional<Negatives> negatives;
  if (protocol.negatives > 0) negatives = negatives_of_run(RunDirectory(directory), run.log, split, table);
  Rows rows(table, data, split, negatives ? &*negatives : nullptr, options);
  rows.add_model(*run.model, config.positions_from_end, run.transitions);
  rows.add_baselines(run.transitions);
  return table;
}

RankingTable evaluate_logs(const std::vector<std::string>& logs, const InteractionOptions& log_options,
                           RankingProtocol protocol, const EvaluateOptions& options) {
  check_next(protocol.next);
  protocol.next = protocol.holdout = std::max<int64_t>(1, protocol.next);
  ReadReport report;
  const Interactions data = read_interactions(logs, log_options, report);
  RankingTable table = start_table(protocol, data, report.sha256);
  table.messages = report.lines();
  const Split split = split_of(protocol, data);
  std::optional<Negatives> negatives;
  if (protocol.negatives > 0)
    negatives = draw_negatives(data, split, protocol.negatives, static_cast<uint64_t>(protocol.seed), protocol.repeats);
  Rows(table, data, split, negatives ? &*negatives : nullptr, options)
      .add_baselines(transitions_for(data, split, protocol.repeats));
  return table;
}

std::string to_json(const RankingTable& table) {
  const auto measures = [](const RankingScore& score) {
    nlohmann::ordered_json json;
    for (const auto& [name, value] : named_measures(score)) json[name] = value;
    return json;
  };
  const RankingProtocol& protocol = table.protocol;
  nlohmann::ordered_json json = {
      {"protocol", protocol.name()},
      {"description", protocol.description()},
      {"part", protocol.validation ? "validation" : "test"},
      {"data",
       {{"sha256", table.data_sha256}, {"users", table.users}, {"items", table.items}, {"events", table.events}}}};
  const RankingScore& counts = table.rows.front().score;
  json["users"] = counts.users;
  json["users_without_target"] = counts.no_target;
  json["users_without_history"] = counts.no_history;
  json["users_not_sampled"] = counts.not_sampled;
  json["targets_in_history"] = counts.repeated;
  json["next"] = protocol.next;
  for (const RankingTable::Row& row : table.rows) {
    nlohmann::ordered_json& to = row.name == "model" ? json : json["baselines"][row.name];
    to.update(measures(row.score));
    for (size_t i = 0; i < row.segments.size(); i++) {
      nlohmann::ordered_json& segment = to["segments"][table.segments[i]];
      segment["users"] = row.segments[i].users;
      segment.update(measures(row.segments[i]));
    }
  }
  return json.dump();
}

}  // namespace qkv
