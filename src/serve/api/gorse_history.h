// Histories of users: the events of a run's log, and those that clients have reported since.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/recommend_lines.h"
#include "serve/api/event_store.h"
#include "serve/engine/api_family.h"

namespace qkv {

// The state of Gorse's routes: the events that clients have reported.
class GorseState : public FamilyState {
 public:
  explicit GorseState(const ServerOptions& options) : path_(options.events) {}

  // Opens the file of events, in the unit of the first recommender's log, or in seconds if that is unknown.
  std::function<void()> prepare(const std::vector<ModelPtr>& models) override;

  // Returns the events, or null if they are not stored. Prepare thread and text threads.
  const std::shared_ptr<EventStore>& events() const { return events_; }

 private:
  const std::string path_;
  std::shared_ptr<EventStore> events_;
};

// Returns the ticks per second of the times in a run's log: 1, 1000 or 1,000,000, by the size of one of them; 0 if it
// has none or they do not look like times since 1970.
int64_t ticks_of_log(const Recommender& recommender);

// Returns the history of a user in the order of the times, each event once. The user may be in the log, in `events`,
// which may be null, or in neither. In a log whose unit is unknown, reported events come last, with unknown times.
RecommendLine history_of_user(const std::string& user, const Recommender& recommender, const EventStore* events);

// Returns the history that events of one session make, with times in the unit of the run's log. times: microseconds
// since 1970, ascending, or empty if they are unknown.
RecommendLine history_of_session(const std::vector<std::string>& items, const std::vector<int64_t>& times,
                                 const Recommender& recommender);

}  // namespace qkv
