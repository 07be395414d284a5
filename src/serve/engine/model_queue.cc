#include "serve/engine/model_queue.h"

#include <algorithm>

namespace qkv {

using Milliseconds = std::chrono::milliseconds;

bool ClientCounts::has_room(const std::string& client, int64_t texts) const {
  const std::lock_guard lock(mutex_);
  const auto place = texts_.find(client);
  return most_ == 0 || (place == texts_.end() ? 0 : place->second) + texts <= most_;
}

void ClientCounts::add(const std::string& client, int64_t texts) {
  const std::lock_guard lock(mutex_);
  texts_[client] += texts;
}

void ClientCounts::remove(const std::string& client, int64_t texts) {
  const std::lock_guard lock(mutex_);
  const auto place = texts_.find(client);
  if ((place->second -= texts) == 0) texts_.erase(place);
}

void RecentRate::forget(int64_t second) {
  if (second - last_ >= kSeconds) seconds_ = {};
  for (int64_t s = std::max(last_, second - kSeconds) + 1; s <= second; s++)
    seconds_[static_cast<size_t>(s % kSeconds)] = {};
  last_ = std::max(last_, second);
}

static int64_t second_of(RecentRate::Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

void RecentRate::add(int64_t cost, bool others_wait, Time now) {
  const std::lock_guard lock(mutex_);
  forget(second_of(now));
  if (waited_) {
    Second& second = seconds_[static_cast<size_t>(second_of(now) % kSeconds)];
    second.cost += cost;
    second.time += now - ended_;
  }
  waited_ = others_wait;
  ended_ = now;
}

void RecentRate::skip() {
  const std::lock_guard lock(mutex_);
  waited_ = false;
}

double RecentRate::per_second(Time now) {
  const std::lock_guard lock(mutex_);
  forget(second_of(now));
  Second sum;
  for (const Second& second : seconds_) sum = {sum.cost + second.cost, sum.time + second.time};
  return sum.time < std::chrono::seconds(1) ? 0 : static_cast<double>(sum.cost) / sum.time.count();
}

ModelQueue::QueueTicket& ModelQueue::QueueTicket::operator=(QueueTicket&& other) noexcept {
  if (this == &other) return *this;
  leave();
  queue_ = std::exchange(other.queue_, nullptr);
  client_ = std::move(other.client_);
  texts_ = other.texts_;
  cost_ = other.cost_;
  started_ = other.started_;
  entered_ = other.entered_;
  return *this;
}

ModelQueue::QueueTicket ModelQueue::QueueTicket::split(int64_t cost) {
  QueueTicket part;
  part.client_ = client_;  // first: it may throw
  part.queue_ = queue_;
  part.texts_ = 1;
  part.cost_ = cost;
  part.started_ = started_;
  part.entered_ = entered_;
  texts_ -= 1;
  cost_ -= cost;
  if (texts_ == 0) queue_ = nullptr;
  return part;
}

void ModelQueue::QueueTicket::start() {
  if (!queue_ || std::exchange(started_, true)) return;
  queue_->add_waiting(client_, -texts_, -cost_);
  queue_->running_ += texts_;
  queue_->metrics_.add_running(texts_);
  queue_->metrics_.observe_queue(std::chrono::duration<double>(std::chrono::steady_clock::now() - entered_).count());
}

void ModelQueue::QueueTicket::add_cost(int64_t cost) {
  if (started_) cost_ += cost;
}

void ModelQueue::QueueTicket::finish() {
  if (queue_) queue_->rate_.add(cost_, queue_->waiting_ > 0, std::chrono::steady_clock::now());
  finished_ = true;
  leave();
}

void ModelQueue::QueueTicket::leave() {
  ModelQueue* queue = std::exchange(queue_, nullptr);
  if (!queue) return;
  if (started_ && !finished_) queue->rate_.skip();
  queue->clients_.remove(client_, texts_);
  if (started_) {
    queue->running_ -= texts_;
    queue->metrics_.add_running(-texts_);
  } else {
    queue->add_waiting(client_, -texts_, -cost_);
  }
}

ModelQueue::Waiting ModelQueue::waiting_of(const std::string& client, size_t& clients) const {
  const std::lock_guard lock(mutex_);
  const auto place = clients_waiting_.find(client);
  clients = clients_waiting_.size();
  return place == clients_waiting_.end() ? Waiting() : place->second;
}

void ModelQueue::add_waiting(const std::string& client, int64_t texts, int64_t cost) {
  {
    const std::lock_guard lock(mutex_);
    const auto place = clients_waiting_.try_emplace(client).first;
    place->second.texts += texts;
    place->second.cost += cost;
    if (place->second.texts == 0) clients_waiting_.erase(place);
  }
  waiting_ += texts;
  waiting_cost_ += cost;
  metrics_.add_waiting(texts, cost);
}

Milliseconds ModelQueue::time_of(int64_t cost) const {
  const double rate = rate_.per_second(std::chrono::steady_clock::now());
  return Milliseconds(rate > 0 ? static_cast<int64_t>(1000 * static_cast<double>(cost) / rate) : 0);
}

void ModelQueue::refuse(const char* code, int64_t cost, const std::string& message) const {
  throw HttpError(429, fmt::format("model {}: {}", model_, message), code,
                  std::clamp(time_of(cost), Milliseconds(1000), Milliseconds(30000)));
}

void ModelQueue::check_room(const std::string& client, int64_t texts, int64_t cost, Milliseconds deadline) const {
  if (cost > limits_.tokens)
    throw HttpError(400,
                    fmt::format("model {}: the request needs {} tokens, with those that may be generated, more than {} "
                                "(queue_tokens)",
                                model_, cost, limits_.tokens),
                    "too_many_tokens");
  size_t clients = 0;
  const Waiting own = waiting_of(client, clients);
  // Clients take turns: before a text of this one, each of the others starts as much as this one has waiting.
  const int64_t ahead = std::min(waiting_cost_.load(), own.cost * static_cast<int64_t>(clients));
  if (own.texts > 0 && own.texts + texts > limits_.items)
    refuse("queue_full", ahead, fmt::format("{} requests of this client wait already", own.texts));
  if (own.cost + cost > limits_.tokens)
    refuse("too_many_tokens", ahead, fmt::format("{} tokens of this client wait already", own.cost));
  if (waiting_ > 0 && waiting_ + texts > QueueLimits::kClients * limits_.items)
    refuse("queue_full", ahead, fmt::format("{} requests wait already", waiting_.load()));
  if (waiting_cost_ + cost > QueueLimits::kClients * limits_.tokens)
    refuse("too_many_tokens", ahead, fmt::format("{} tokens wait already", waiting_cost_.load()));
  if (const Milliseconds wait = time_of(ahead); wait > deadline)
    refuse("expected_wait", ahead, fmt::format("requests wait for about {} s", wait.count() / 1000));
  if (!clients_.has_room(client, texts)) refuse("client_limit", ahead, "this client has too many requests");
}

ModelQueue::QueueTicket ModelQueue::enter(const std::string& client, int64_t texts, int64_t cost,
                                          Milliseconds deadline) {
  check_room(client, texts, cost, deadline);
  QueueTicket place;
  place.client_ = client;
  clients_.add(client, texts);
  place.queue_ = this;
  place.texts_ = texts;
  place.cost_ = cost;
  place.entered_ = std::chrono::steady_clock::now();
  try {
    add_waiting(client, texts, cost);
  } catch (...) {
    place.queue_ = nullptr;
    clients_.remove(client, texts);
    throw;
  }
  return place;
}

}  // namespace qkv
