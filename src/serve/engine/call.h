// A request on its way through the server, from its arrival to its end. It belongs to the prepare thread, so that it
// needs no lock. A part of a call that reads or writes a long text runs on a text thread (Service::run). A reply, an
// event or the start of work is left to the prepare thread, until that part has ended.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/engine/request_track.h"
#include "serve/engine/route.h"
#include "serve/http/exchange.h"
#include "serve/http/http_reply.h"

namespace qkv {

class ServedModel;
class Service;
using ModelPtr = std::shared_ptr<ServedModel>;

// The computation for a call.
class CallWork {
 public:
  virtual ~CallWork() = default;
  // Stops what has not ended. Its results are ignored from now on.
  virtual void cancel() = 0;
  virtual void pause(bool) {}
  virtual bool has_started() const = 0;
};

class Call : public std::enable_shared_from_this<Call> {
 public:
  using Clock = std::chrono::steady_clock;

  Call(Service& service, std::shared_ptr<Exchange> exchange, std::shared_ptr<RequestTrack> track);

  Service& service() { return service_; }
  const RequestHead& head() const { return exchange_->head(); }
  const std::string& body() const { return exchange_->body(); }
  const Route& route() const { return *track_->match.route; }
  const std::vector<std::string>& path_parts() const { return track_->match.parts; }  // those that "{}" stands for
  const std::string& client() const { return client_; }  // the name of its key, or client_of_address
  // Clients with different keys do not share prefixes: the time would reveal to one what another has sent.
  const std::string& salt() const { return salt_; }
  // Takes the key that a body states, if the head has none. Throws HttpError if a key is required and this one is not
  // known.
  void identify(std::string_view key);
  RequestTrack& track() { return *track_; }
  // Names the model that the call uses, for the metrics.
  void use(const ModelPtr& model);
  const std::string& id() const { return exchange_->id(); }
  std::string_view scheme() const { return exchange_->is_secure() ? "https" : "http"; }
  // Returns the value of a field of the query; "" if there is none.
  std::string query(std::string_view name) const;
  std::chrono::milliseconds deadline() const { return deadline_; }  // from its arrival
  bool has_ended() const { return ended_; }                         // any thread

  // Runs the handler of the route. An exception is the answer.
  void start();
  // Runs a function that continues the call, such as one that formats results, unless the call has ended. An exception
  // is the answer.
  template <class Function>
  void proceed(Function&& function) {
    if (ended_) return;
    try {
      if (exchange_->is_abandoned()) throw no_memory();  // a part of the answer is missing
      function();
    } catch (...) {
      fail(std::current_exception());
    }
  }

  // Sets the work that answers the call later. Cancelled when the client leaves or the deadline passes.
  void set_work(std::shared_ptr<CallWork> work) { work_ = std::move(work); }

  // End the call with an answer.
  void reply(HttpReply reply);
  void reply_json(std::string json) { reply({200, "application/json", std::move(json)}); }
  void fail(const HttpError& error, Outcome outcome = Outcome::failed);
  void fail(std::exception_ptr error);
  // Any thread: gives the answer up for want of memory. The connection closes soon, which cancels the call.
  void abandon() { exchange_->abandon(); }

  // Stream of events. The status is sent with the first event; an error before it has a status of its own.
  void send_event(const std::string& json);
  void end_events();  // with "[DONE]"

  void cancel();       // the client has left
  void will_stream();  // called before the work starts, if the answer is a stream

 private:
  void expire();
  void set_timer();
  void end(Outcome outcome);
  void count(Outcome outcome);
  void send(const std::string& bytes);
  void send_error(const HttpError& error);
  void schedule_comment();

  Service& service_;
  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<RequestTrack> track_;
  std::string client_, salt_;
  std::shared_ptr<ServedModel> model_;
  const Clock::time_point arrived_ = Clock::now();
  std::chrono::milliseconds deadline_;
  boost::asio::steady_timer timer_, silence_;
  std::shared_ptr<CallWork> work_;
  RejectReason reason_ = RejectReason::queue;
  std::atomic<bool> ended_ = false;
  bool streams_ = false, paused_ = false;
};

using CallPtr = std::shared_ptr<Call>;

// Returns the time that a request has from its arrival: the least of `seconds` and what its headers state.
std::chrono::milliseconds deadline_of(const RequestHead& head, double seconds, bool streams);

// Returns the reason of a refusal with status 429 or 503, by its code.
RejectReason reason_of(const std::string& code);

// Throws an error of a model that computes, which the request is not to blame for.
[[noreturn]] void throw_model_error(const std::exception_ptr& error);

}  // namespace qkv
