// Measures of quality: BLEU and chrF of translations against one reference each, as sacreBLEU computes them, and the
// evaluation of recommenders, with popularity and Markov-chain baselines.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "qkv/interactions.h"

namespace [[gnu::visibility("default")]] qkv {

// Corpus BLEU: Papineni et al. (2002), with the 13a tokenization and exponential smoothing of sacreBLEU.
struct BleuScore {
  double score = 0;                    // 0 … 100
  std::array<double, 4> precisions{};  // of 1- to 4-grams, 0 … 100
  double brevity_penalty = 0;
  int64_t hypothesis_length = 0, reference_length = 0;  // tokens
};

// chrF2: Popović (2015), with character 1- to 6-grams without spaces.
struct ChrfScore {
  double score = 0;  // 0 … 100
};

// Score line i of hypotheses against line i of references. All lines must be valid UTF-8. Throw Error if the numbers of
// lines differ.
BleuScore bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
               bool lowercase = false);
ChrfScore chrf(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
               bool lowercase = false);

constexpr std::array<int64_t, 3> kCutoffs = {5, 10, 20};
using AtCutoffs = std::array<double, kCutoffs.size()>;  // one value for each cutoff k

// Means over the users that have a target. The rank of a target is 1 + the number of other candidates with the same or
// a higher score; ties, and NaN, count against the model. Among several targets the better one comes first and does not
// count as a candidate of the others. docs/evaluation-protocols.md has the formulas, which are those of RecTools.
struct RankingScore {
  // R is the set of a user's distinct targets. Those of a rank up to k are hits.
  AtCutoffs hr{};         // hit rate: 1 if there is a hit
  AtCutoffs ndcg{};       // Σ over hits of 1 / log2(1 + rank), divided by that sum over the ranks 1 … min(|R|, k)
  AtCutoffs mrr{};        // 1 / rank of the first hit
  AtCutoffs recall{};     // hits / |R|
  AtCutoffs precision{};  // hits / k
  AtCutoffs map{};        // Σ over hits of hits up to this rank / rank, divided by |R|
  AtCutoffs ndcg_full{};  // as ndcg, divided by the sum over the ranks 1 … k

  // Measures of the k best items of each user by score, without the user's history; equal scores in the order of the
  // items.
  AtCutoffs coverage{};    // share of all items that are listed for some user
  AtCutoffs novelty{};     // mean over users of the mean over listed items of −log2 of the share of users who had the
                           // item before (MIUF); an item that nobody had counts as one that one user had
  AtCutoffs popularity{};  // mean over users of the mean number of earlier events of listed items (ARP)

  int64_t users = 0;        // users with a target and a history, in the sample if there is one
  int64_t no_target = 0;    // users without a target in this split
  int64_t no_history = 0;   // users whose target is their first event; not in the means
  int64_t not_sampled = 0;  // users with a target and a history that the sample leaves out
  int64_t repeated = 0;     // targets of these users that are in their history, which are misses; 0 with repeats
};

// Returns the names and values of the measures: HR@5, HR@10, …; those for one target come first.
std::vector<std::pair<std::string, double>> named_measures(const RankingScore& score);

// An evaluation protocol; docs/evaluation-protocols.md describes them.
struct RankingProtocol {
  SplitRule split = SplitRule::leave_one_out;
  double test_share = 0.1;  // share of all events in the test of a temporal split; its validation is as large
  int64_t negatives = 0;    // random items that each target is ranked against, per user; 0: all items
  int64_t seed = 1;         // of these random items
  bool repeats = false;     // items that the user already had are candidates
  bool validation = false;  // evaluate on the validation events instead of the test events
  int64_t next = 0;         // number of targets of a user: the first events of the held-out part; 0: as many as the
                            // run holds out of each user (1 in a temporal split), 1 for logs
  int64_t holdout = 1;      // events of a user in each held-out part of leave-one-out: that of the run; `next` for logs
  int64_t most_users = -1;  // evaluate at most that many users, a sample by a hash of their names; 0: all; -1: as many
                            // that users × items is at most 2·10¹⁰, but at least 1,000

  // Returns the protocol "full", "sampled-N" (N random items, 1 to 10,000), "temporal" or "users". Throws Error for
  // another name.
  static RankingProtocol named(const std::string& name);

  std::string name() const;
  std::string description() const;  // one line: split, candidates, ties
};

// Options for what an evaluation yields in addition to the scores of all users.
struct EvaluateOptions {
  std::string segments;  // also score groups of users: "length" (by events before the target), "popularity" (of the
                         // first target: head, middle or tail third of all events), or a file with lines user,segment;
                         // "": none
  std::string lists;     // write user,item,rank of the first row's 20 best items of each user to this file; "": none
};

// The scores of one evaluation.
struct RankingTable {
  RankingProtocol protocol;  // with the numbers in effect
  std::string data_sha256;   // of the log's files
  int64_t users = 0, items = 0, events = 0;
  struct Row {
    std::string name;  // "model", "model without transitions", "popularity", "markov" or "transitions"
    RankingScore score;
    std::vector<RankingScore> segments;  // of each of the segments below
  };
  std::vector<Row> rows;
  std::vector<std::string> segments;  // their names; empty without segments
  std::vector<std::string> messages;  // findings in the log, and where random items are stored
};

// Evaluates the model of a run and the baselines on the log of the run. The protocol must use the split that the model
// was trained with, and `next` must not exceed its holdout; a temporal one uses the run's test_share. Whether
// items repeat is up to the run. Random items are stored in the run and reused. Throws Error, naming the file, for an
// invalid run.
RankingTable evaluate_run(const std::string& run, RankingProtocol protocol, const EvaluateOptions& options = {});

// Returns "full", "temporal" or "users": the protocol with the split that the run was trained with.
std::string protocol_of_run(const std::string& run);

// Evaluates the baselines only, on logs that are read as by read_interactions (qkv/interactions.h).
RankingTable evaluate_logs(const std::vector<std::string>& logs, const InteractionOptions& log_options,
                           RankingProtocol protocol, const EvaluateOptions& options = {});

// Returns a table as one line of JSON; docs/evaluation-protocols.md describes it.
std::string to_json(const RankingTable& table);

}  // namespace qkv
