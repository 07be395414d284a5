#include "ranks/communicator.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "core/system/start_thread.h"
#include "ranks/communication_thread.h"

namespace qkv {

Communicator::Communicator(const qkv_transport& transport, int expected, const std::string& source,
                           const CommunicatorOptions& options)
    : messages_(start_thread(
          "ranks", [this, &transport, options] { CommunicationThread(transport, mailbox_, options).run(); })) {
  std::unique_lock lock(mailbox_.mutex);
  mailbox_.changed.wait(lock, [&] { return mailbox_.opened || mailbox_.closed; });
  rank_ = mailbox_.rank;
  size_ = mailbox_.size;
  const bool differs = mailbox_.opened && expected > 0 && size_ != expected;
  if (differs) mailbox_.own_failure = "the launcher and the transport plugin disagree";
  if (!differs && mailbox_.opened) return;
  const std::string failure =
      differs
          ? fmt::format("{}: has {} ranks, but {} is {}; use the launcher of the library that the plugin is built for",
                        transport.name(), size_, source, expected)
          : mailbox_.failure;
  wait_until_closed(lock);
  lock.unlock();
  messages_.join();
  qkv::fail("{}", failure);
}

Communicator::~Communicator() {
  {
    std::unique_lock lock(mailbox_.mutex);
    if (!mailbox_.leaving && !mailbox_.failed && !mailbox_.own_failure) mailbox_.own_failure = "ended early";
    wait_until_closed(lock);
  }
  messages_.join();
}

void Communicator::wait_until_closed(std::unique_lock<std::mutex>& lock) {
  mailbox_.acknowledged = true;
  mailbox_.changed.notify_all();
  mailbox_.changed.wait(lock, [&] { return mailbox_.closed; });
}

void Communicator::throw_failure(std::unique_lock<std::mutex>& lock) {
  wait_until_closed(lock);
  if (mailbox_.reported) throw ReportedElsewhere(mailbox_.failure);
  throw Error(mailbox_.failure);
}

std::string Communicator::label(int rank) {
  const std::lock_guard lock(mailbox_.mutex);
  return mailbox_.label(rank);
}

void Communicator::set_hosts(std::vector<std::string> hosts) {
  const std::lock_guard lock(mailbox_.mutex);
  mailbox_.hosts = std::move(hosts);
}

void Communicator::set_activity(std::string activity) {
  const std::lock_guard lock(mailbox_.mutex);
  mailbox_.activity = std::move(activity);
}

void Communicator::leave() {
  std::unique_lock lock(mailbox_.mutex);
  if (mailbox_.failed) throw_failure(lock);
  mailbox_.leaving = true;
  wait_until_closed(lock);
  if (mailbox_.failed) throw_failure(lock);
}

bool Communicator::fail(const std::string& line) {
  std::unique_lock lock(mailbox_.mutex);
  if (!mailbox_.failed && !mailbox_.closed) mailbox_.own_failure = line;
  wait_until_closed(lock);
  return mailbox_.reported;
}

void Communicator::Group::send(std::span<const std::byte> bytes, int to) {
  post(true, const_cast<std::byte*>(bytes.data()), bytes.size(), to);
}

void Communicator::Group::receive(std::span<std::byte> bytes, int from) {
  post(false, bytes.data(), bytes.size(), from);
}

void Communicator::Group::post(bool sends, std::byte* bytes, size_t size, int peer) {
  Mailbox& box = communicator_.mailbox_;
  std::unique_lock lock(box.mutex);
  if (box.failed) communicator_.throw_failure(lock);
  for (size_t at = 0; at < size; at += QKV_MOST_MESSAGE_BYTES) {
    box.posted.push_back({sends, bytes + at, std::min<size_t>(size - at, QKV_MOST_MESSAGE_BYTES), peer, &open_});
    open_++;
  }
  box.changed.notify_all();
}

bool Communicator::Group::ended() {
  Mailbox& box = communicator_.mailbox_;
  std::unique_lock lock(box.mutex);
  if (open_ > 0 && box.failed) communicator_.throw_failure(lock);
  return open_ == 0;
}

void Communicator::Group::wait() {
  Mailbox& box = communicator_.mailbox_;
  std::unique_lock lock(box.mutex);
  box.changed.wait(lock, [&] { return open_ == 0 || box.failed; });
  if (open_ > 0) communicator_.throw_failure(lock);
}

// The memory of transfers is in use until they have ended or the communication thread has closed the transport.
Communicator::Group::~Group() {
  Mailbox& box = communicator_.mailbox_;
  std::unique_lock lock(box.mutex);
  if (open_ == 0 || box.closed) return;
  if (!box.failed && !box.own_failure) box.own_failure = "an exchange of messages was abandoned";
  communicator_.wait_until_closed(lock);
}

}  // namespace qkv
