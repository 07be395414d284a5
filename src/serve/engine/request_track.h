// The record of a request for its line in the log and for the metrics. The I/O thread makes it, the prepare thread
// fills it in, and the I/O thread writes it when the answer has been sent or the client has left.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "serve/engine/route.h"
#include "serve/http/client_shares.h"
#include "serve/metrics/model_metrics.h"
#include "serve/metrics/request_log.h"

namespace qkv {

class RequestTrack {
 public:
  using Clock = std::chrono::steady_clock;

  RequestTrack() = default;
  ~RequestTrack() {
    if (bodies) bodies->give_back(body_client, body_held);
    if (answers) answers->give_back(answer_client, answer_held);
  }
  RequestTrack(const RequestTrack&) = delete;
  RequestTrack& operator=(const RequestTrack&) = delete;

  // Set before the request is handled.
  std::string client;    // the name of its key, or client_of_address
  bool has_key = false;  // the head has a key
  RouteMatch match;
  // The bytes that the request holds: of bodies, and of answers that clients have not read. null: none.
  ClientShares* bodies = nullptr;
  std::string body_client;  // at its arrival
  int64_t body_held = 0;
  ClientShares* answers = nullptr;
  std::string answer_client;
  int64_t answer_held = 0;

  // Changes the record under its lock.
  template <class Change>
  void change(Change&& change) {
    const std::lock_guard lock(mutex_);
    change(record_);
  }
  // Counts texts that the request asks for, and their tokens.
  void add_texts(int64_t texts, int64_t input_tokens = 0) {
    change([&](RequestRecord& record) {
      record.texts += texts;
      record.input_tokens += input_tokens;
    });
  }
  // Sets how the request ended; the first call counts.
  void end(Outcome outcome) {
    const std::lock_guard lock(mutex_);
    if (!outcome_) outcome_ = outcome;
  }
  // Returns the record of a request whose answer has been sent, or whose client has left before.
  RequestRecord take() {
    const std::lock_guard lock(mutex_);
    record_.time = std::chrono::system_clock::now();
    record_.seconds = std::chrono::duration<double>(Clock::now() - arrived_).count();
    record_.outcome = names_of(Outcome())[static_cast<size_t>(outcome_.value_or(Outcome::cancelled))];
    return std::move(record_);
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - arrived_).count(); }

 private:
  const Clock::time_point arrived_ = Clock::now();
  std::mutex mutex_;
  RequestRecord record_;
  std::optional<Outcome> outcome_;
};

}  // namespace qkv
