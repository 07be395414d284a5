// Evaluation of recommenders, with popularity and Markov-chain baselines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/interactions.h"
#include "qkv/ranking.h"

namespace [[gnu::visibility("default")]] qkv {

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
