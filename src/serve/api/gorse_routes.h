// The state that the routes of Gorse keep between requests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

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

}  // namespace qkv
