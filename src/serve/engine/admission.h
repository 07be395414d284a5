// Which requests the server takes, from the head of a request to the line in the log at its end.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/server.h"
#include "serve/engine/call.h"
#include "serve/engine/request_track.h"
#include "serve/http/api_keys.h"
#include "serve/http/client_address.h"
#include "serve/http/client_shares.h"
#include "serve/http/http_server.h"
#include "serve/http/origin.h"
#include "serve/metrics/metrics.h"
#include "serve/metrics/request_log.h"

namespace qkv {

// The models that answer a request for sure, because no other one is served for its use. Thread-safe.
class DefaultModels {
 public:
  void set(const std::vector<std::shared_ptr<ServedModel>>& models);
  // Returns the only model for a use; null if there is none or more than one.
  std::shared_ptr<ServedModel> find(ModelUse use) const;

 private:
  mutable std::mutex mutex_;
  std::array<std::shared_ptr<ServedModel>, kModelUses.size()> models_;
};

// Checks requests by their heads: origin, route, key, and what their clients hold already. Counts and logs them at
// their end. The record of a request is the RequestTrack that its exchange holds. Functions are called on the I/O
// thread, unless they say otherwise.
class Admission {
 public:
  // The arguments must outlive this. Throws Error for options that are not valid.
  Admission(const ServerOptions& options, Metrics& metrics);

  // Before the first request: the addresses that the server listens on, whose names are allowed as hosts.
  void set_listeners(const std::vector<std::string>& addresses);

  // As those of HttpHandler.
  void admit(const RequestHead& head, const std::string& peer, Grant& grant);
  HttpReply refusal(const Refusal& refused);
  void ended(const Exchange& exchange);
  void handshake_failed(const std::string& peer);
  bool is_proxy(const std::string& address) const { return address == "unix" || proxies_.trusts(address); }
  // Returns the answer to a request that has been admitted without a route: OPTIONS.
  HttpReply answer_options(const RequestHead& head, const RouteMatch& match) const;

  // Any thread: takes requests for these models from now on.
  void set_models(const std::vector<ModelPtr>& models);
  // Any thread: refuses requests that need a model from now on.
  void end() { ending_ = true; }
  bool is_loading() const { return loading_; }

  // Any thread: reads the keys again. Throws Error if they are not sound, and then keeps those that were read before.
  void reload_keys();
  bool needs_keys() const { return keys_.has_value(); }
  std::optional<std::string> name_of_key(std::string_view key) const;

  // Prepare thread: counts the bytes of an answer, those it may have or those it has, as unread until the request has
  // ended. Throws HttpError with this status if clients have too many.
  void hold_answer(RequestTrack& track, int64_t bytes, int status);

 private:
  std::shared_ptr<RequestTrack> track_of(const RequestHead& head, const std::string& peer) const;
  void check_key(const RequestHead& head, const Route& route, RequestTrack& track) const;
  void check_room(const RequestHead& head, const Route& route, const RequestTrack& track) const;
  void grant_body(const RequestHead& head, RequestTrack& track);
  void check_answers(const RequestTrack& track) const;
  void finish(RequestTrack& track, int status, const RequestHead* head);

  const ServerOptions& options_;
  Metrics& metrics_;
  RequestLog log_;
  std::optional<ApiKeys> keys_;
  std::optional<OriginPolicy> origins_;
  const TrustedProxies proxies_;
  ClientShares bodies_;   // bytes of bodies that are being read or wait
  ClientShares answers_;  // bytes of answers that clients have not read
  DefaultModels default_models_;
  std::atomic<bool> loading_ = true, ending_ = false;
};

}  // namespace qkv
