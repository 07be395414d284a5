// A family of routes and what it keeps between requests. The families are listed in serve/api/families.cc.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "qkv/server.h"
#include "serve/engine/call.h"

namespace qkv {

// The state that the routes of a family keep between requests. Service::state() returns it to them.
class FamilyState {
 public:
  virtual ~FamilyState() = default;

  // Prepares the state for the models, which have just been loaded. Runs once, on any thread. Returns a function that
  // makes the result visible to requests; the prepare thread calls it.
  virtual std::function<void()> prepare(const std::vector<ModelPtr>&) {
    return [] {};
  }
};

struct ApiFamily {
  std::span<const Route> (*routes)();
  std::unique_ptr<FamilyState> (*make_state)(const ServerOptions&) = nullptr;  // null: the family keeps nothing
};

// Returns all families of the server.
std::span<const ApiFamily> api_families();

}  // namespace qkv
