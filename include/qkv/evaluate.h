// How well a recommender foretells what users did next, beside popularity and a Markov chain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/interactions.h"
#include "qkv/ranking.h"

namespace qkv {

// docs/evaluation-protocols.md says what each does.
struct RankingProtocol {
  bool temporal = false;    // all items from a moment on; else leave-one-out
  double test_share = 0.1;  // of all events, in the test of a temporal split; its validation has as many
  int64_t negatives = 0;    // drawn for every user; 0: all items are ranked
  int64_t seed = 1;         // of the draw
  bool validation = false;  // foretells the events of the validation, else those of the test

  // "full", "sampled-N" (N drawn items, 1 to 10,000) or "temporal". Throws Error for another name.
  static RankingProtocol named(const std::string& name);

  std::string name() const;
  std::string description() const;  // a line: split, candidates, ties
};

struct RankingTable {
  RankingProtocol protocol;
  std::string data_sha256;  // of the log's files
  int64_t users = 0, items = 0, events = 0;
  struct Row {
    std::string name;  // "model", "popularity", "markov"
    RankingScore score;
  };
  std::vector<Row> rows;
  std::vector<std::string> messages;  // what reading the log found; where drawn items are kept
};

// The model of a run beside the baselines, on the run's log. The protocol's split must be that the model was trained
// with; a temporal one has the run's test_share. Drawn items are kept in the run and used again. Throws Error, naming
// the file, for a run that will not do.
RankingTable evaluate_run(const std::string& run, RankingProtocol protocol);

// "full" or "temporal": the protocol with the split that this run was trained with.
std::string protocol_of_run(const std::string& run);

// The baselines alone, on logs as read_interactions reads them.
RankingTable evaluate_logs(const std::vector<std::string>& logs, const InteractionOptions& options,
                           const RankingProtocol& protocol);

}  // namespace qkv
