// Evaluation of recommenders, with popularity and Markov-chain baselines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/interactions.h"
#include "qkv/ranking.h"

namespace qkv {

// An evaluation protocol; docs/evaluation-protocols.md describes them.
struct RankingProtocol {
  bool temporal = false;    // evaluate all events after a point in time; otherwise leave one out per user
  double test_share = 0.1;  // share of all events in the test of a temporal split; its validation is as large
  int64_t negatives = 0;    // random items that each target is ranked against, per user; 0: all items
  int64_t seed = 1;         // of these random items
  bool repeats = false;     // items that the user already had are candidates
  bool validation = false;  // evaluate on the validation events instead of the test events

  // Returns the protocol "full", "sampled-N" (N random items, 1 to 10,000) or "temporal". Throws Error for another
  // name.
  static RankingProtocol named(const std::string& name);

  std::string name() const;
  std::string description() const;  // one line: split, candidates, ties
};

// The scores of one evaluation.
struct RankingTable {
  RankingProtocol protocol;
  std::string data_sha256;  // of the log's files
  int64_t users = 0, items = 0, events = 0;
  struct Row {
    std::string name;  // "model", "popularity" or "markov"
    RankingScore score;
  };
  std::vector<Row> rows;
  std::vector<std::string> messages;  // findings in the log, and where random items are stored
};

// Evaluates the model of a run and the baselines on the log of the run. The protocol must use the split that the model
// was trained with; a temporal one uses the run's test_share. Whether items repeat is up to the run. Random items are
// stored in the run and reused. Throws Error, naming the file, for an invalid run.
RankingTable evaluate_run(const std::string& run, RankingProtocol protocol);

// Returns "full" or "temporal": the protocol with the split that the run was trained with.
std::string protocol_of_run(const std::string& run);

// Evaluates the baselines only, on logs that are read as by read_interactions (qkv/interactions.h).
RankingTable evaluate_logs(const std::vector<std::string>& logs, const InteractionOptions& options,
                           const RankingProtocol& protocol);

}  // namespace qkv
