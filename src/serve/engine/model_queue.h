// Limits on what waits for a model, and the counts of what waits and runs.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "serve/http/http_reply.h"
#include "serve/metrics/model_metrics.h"

namespace qkv {

// The texts that each client has waiting or running, in all models. Thread-safe.
class ClientCounts {
 public:
  // most: of one client; 0 means no limit.
  explicit ClientCounts(int64_t most) : most_(most) {}

  // Returns whether the client would have no more than the limit.
  bool has_room(const std::string& client, int64_t texts) const;
  void add(const std::string& client, int64_t texts);
  void remove(const std::string& client, int64_t texts);

 private:
  const int64_t most_;
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> texts_;
};

// The work that is done per second while other work waits, over the last ten seconds. Without work that waits the rate
// says how much was asked for, not how much can be done. Thread-safe.
class RecentRate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Counts work that has ended. others_wait: whether more of it waits.
  void add(int64_t cost, bool others_wait, Time now);
  // Leaves out the time since the last work that ended: in it work was done for a text that was cancelled.
  void skip();
  double per_second(Time now);  // 0 if work has waited for less than a second

 private:
  static constexpr int64_t kSeconds = 10;
  struct Second {
    int64_t cost = 0;
    std::chrono::duration<double> time{0};
  };

  void forget(int64_t second);

  std::mutex mutex_;
  std::array<Second, kSeconds> seconds_ = {};
  int64_t last_ = 0;  // second of the newest entry
  bool waited_ = false;
  Time ended_;  // of the last work
};

// Limits on what a client may have waiting for a model. All clients together may have kClients times as much, so that
// one that has all of its own keeps nobody from waiting.
struct QueueLimits {
  static constexpr int64_t kClients = 4;

  int64_t items = 256;      // texts
  int64_t tokens = 131072;  // their cost
};

class ModelQueue {
 public:
  // The place of texts from their arrival to their end, which gives everything back in its destructor. It is moved
  // between threads, and used by one at a time.
  class QueueTicket {
   public:
    QueueTicket() = default;
    QueueTicket(QueueTicket&& other) noexcept { *this = std::move(other); }
    QueueTicket& operator=(QueueTicket&& other) noexcept;
    ~QueueTicket() { leave(); }

    QueueTicket split(int64_t cost);  // takes one text of this cost out of it
    void start();                     // what waited runs from now on
    void add_cost(int64_t cost);      // what runs costs more than was known
    void finish();                    // as leave, and counts as work that was done
    void leave();
    bool started() const { return started_; }

   private:
    friend class ModelQueue;
    ModelQueue* queue_ = nullptr;
    std::string client_;
    std::chrono::steady_clock::time_point entered_ = {};
    int64_t texts_ = 0, cost_ = 0;
    bool started_ = false, finished_ = false;
  };

  // The arguments must outlive the queue.
  ModelQueue(std::string model, const QueueLimits& limits, ClientCounts& clients, ModelMetrics& metrics)
      : model_(std::move(model)), limits_(limits), clients_(clients), metrics_(metrics) {}

  // Returns a place for texts with this cost in all. An array of n texts costs what n requests cost. Throws HttpError
  // 429 if they would not fit, or would probably wait longer than the deadline, and 400 if they could never fit.
  QueueTicket enter(const std::string& client, int64_t texts, int64_t cost, std::chrono::milliseconds deadline);

  // Any thread: throws what enter would throw now.
  void check_room(const std::string& client, int64_t texts, int64_t cost, std::chrono::milliseconds deadline) const;

  // Any thread.
  int64_t waiting() const { return waiting_; }
  int64_t running() const { return running_; }
  int64_t waiting_cost() const { return waiting_cost_; }

 private:
  // The texts of a client that wait.
  struct Waiting {
    int64_t texts = 0, cost = 0;
  };

  Waiting waiting_of(const std::string& client, size_t& clients) const;
  void add_waiting(const std::string& client, int64_t texts, int64_t cost);  // negative numbers remove
  std::chrono::milliseconds time_of(int64_t cost) const;
  [[noreturn]] void refuse(const char* code, int64_t cost, const std::string& message) const;

  const std::string model_;
  const QueueLimits limits_;
  ClientCounts& clients_;
  ModelMetrics& metrics_;
  std::atomic<int64_t> waiting_ = 0, running_ = 0, waiting_cost_ = 0;
  mutable std::mutex mutex_;  // of the clients that have texts waiting
  std::map<std::string, Waiting> clients_waiting_;
  mutable RecentRate rate_;
};

}  // namespace qkv
