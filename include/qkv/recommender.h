// Recommending with a run directory: the next items of anyone, known user or not, since a history is all there is to
// somebody. docs/recommend.md says what the scores and explanations are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/interactions.h"

namespace qkv {

struct RecommendOptions {
  int64_t top = 10;                                    // items wanted; there are fewer where the catalogue has no more
  bool exclude_seen = true;                            // no item that the history holds anywhere
  std::optional<std::vector<std::string>> allow = {};  // these items alone
  std::vector<std::string> deny = {};                  // none of these
  bool explain = false;  // fill Recommendation::effects; costs the history's length in passes

  bool operator==(const RecommendOptions&) const = default;
};

struct Recommendation {
  std::string item;
  double score =
      0;  // h · E[item]; after softmax training a natural logarithm up to a constant; of popular items their events
  std::vector<double> effects;  // of each event of `read`: the score less what it is without that event
};

struct Recommendations {
  std::vector<Recommendation> items;        // the best first
  bool popular = false;                     // the history has no known item: these are those with the most events
  std::vector<std::string> read;            // the events that the model read, oldest first: the last known ones
  std::vector<std::string> unknown;         // events that name no item of the model
  std::vector<std::string> unknown_listed;  // entries of allow and deny that name none
};

// A trained model with its catalogue and log. Methods may be called by many threads at the same time; each uses all
// threads inside. Nothing that they take grows with the catalogue, but what is asked for.
class Recommender {
 public:
  // Throws Error, naming the file, if the directory does not hold a whole and sound run.
  explicit Recommender(const std::string& run_directory);
  ~Recommender();
  Recommender(Recommender&&) noexcept;
  Recommender& operator=(Recommender&&) noexcept;

  // Names as the log has them, in the order of their ids.
  const std::vector<std::string>& items() const;
  const std::vector<std::string>& users() const;
  bool has_item(std::string_view item) const;
  bool has_user(std::string_view user) const;

  // All events of a user of the log, in time order, and when each was: in the log's unit (docs/interactions.md), or
  // kNoTime. Throws Error for another user.
  std::vector<std::string> history(std::string_view user) const;
  std::vector<int64_t> times(std::string_view user) const;

  int64_t max_length() const;  // events that the model reads, at most

  // What comes after a history of item names, oldest first. times: of each event, in the log's unit, or kNoTime; or
  // none at all. A model without time gaps does not read them. Throws Error for an option out of range, and as
  // check_times does.
  Recommendations recommend(const std::vector<std::string>& history, const RecommendOptions& options = {},
                            const std::vector<int64_t>& times = {}) const;

  // The same for many: result i, which is the same alone and in any company, is for history i. times: of each history,
  // or none at all.
  std::vector<Recommendations> recommend_all(const std::vector<std::vector<std::string>>& histories,
                                             const RecommendOptions& options = {},
                                             const std::vector<std::vector<int64_t>>& times = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Throws Error unless the times are as many as events, or none, and do not fall; kNoTime may stand anywhere.
void check_times(std::span<const int64_t> times, size_t events);

}  // namespace qkv
