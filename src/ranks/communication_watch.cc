// How a courier watches the other ranks, and what it does after a failure.
#include <cstdlib>

#include "core/to_size.h"
#include "ranks/communication_thread.h"

namespace qkv {
namespace {

constexpr double kPatience = 10;        // seconds after a failure until ranks are killed
constexpr double kPatienceAtStart = 2;  // the same for ranks that may still wait for one that was lost

}  // namespace

void CommunicationThread::receive_watch(int peer) {
  Bytes& bytes = peers_[to_size(peer)].received;
  int64_t number = 0;
  if (transport_.receive(bytes.data(), bytes.size(), peer, kWatchTag, &number) != 0) return on_transport_error();
  requests_.push_back({number, nullptr, peer, false});
}

void CommunicationThread::send_watch(int peer, WatchKind kind, const std::string& text) {
  Peer& to = peers_[to_size(peer)];
  const bool is_beat = kind == WatchKind::beat;
  if (to.lost || (is_beat && (to.beat_pending || to.ended))) return;
  Bytes& message = to.sent[static_cast<size_t>(kind) - 1];
  write_watch_message({kind, text}, message);
  int64_t number = 0;
  if (transport_.send(message.data(), message.size(), peer, kWatchTag, &number) != 0) return on_transport_error();
  requests_.push_back({number, nullptr, peer, true, is_beat});
  messages_++;
  if (is_beat) to.beat_pending = true;
}

void CommunicationThread::on_message(int peer) {
  WatchMessage message;
  try {
    message = read_watch_message(peers_[to_size(peer)].received);
  } catch (const Error& error) {
    return begin_failure(described(peer, std::string("sent ") + error.what()), false);
  }
  watch_.heard(peer);
  Peer& from = peers_[to_size(peer)];
  if (message.kind == WatchKind::end) from.ended = true;
  if (message.kind != WatchKind::failure) {
    if (!from.ended || rank_ == 0) receive_watch(peer);
    return;
  }
  receive_watch(peer);
  if (rank_ > 0) return begin_failure(message.text, true);
  begin_failure(described(peer, message.text), false);
}

// Returns "; step 12", or "" if nothing is known.
std::string CommunicationThread::activity() {
  const std::lock_guard lock(mailbox_.mutex);
  return mailbox_.activity.empty() ? "" : "; " + mailbox_.activity;
}

// Returns "rank 2 (host): the connection was lost" for "rank 2: the connection was lost".
std::string CommunicationThread::described(int peer, const std::string& what) {
  const std::lock_guard lock(mailbox_.mutex);
  const std::string prefix = fmt::format("rank {}: ", peer);
  const std::string rest = what.starts_with(prefix) ? what.substr(prefix.size()) : what;
  return fmt::format("{}: {}", mailbox_.label(peer), rest);
}

void CommunicationThread::on_transport_error() {
  const int lost = transport_.lost();
  const std::string what = transport_.error();
  if (lost < 0 || lost >= size_ || lost == rank_) {
    if (rank_ == 0) return begin_failure(what, false);
    return report_own_failure(what);
  }
  Peer& peer = peers_[to_size(lost)];
  watch_.expect(lost, false);
  peer.lost = true;
  peer.lost_at = now();
  drop_watch_requests(lost);
  if (peer.ended || failing_ || (rank_ > 0 && lost > 0)) return;
  begin_failure(described(lost, what + activity()), false);
}

// Drops the watch messages to and from a lost rank, which never end. Transfers stay open: their memory is in use until
// the transport is closed.
void CommunicationThread::drop_watch_requests(int peer) {
  std::erase_if(requests_, [&](const Request& request) {
    if (request.peer != peer || request.open) return false;
    if (request.sends) messages_--;
    return true;
  });
}

// Looks after the others: beats, silence, and failures that rank 0 should have passed on.
void CommunicationThread::look() {
  if (watch_.is_time_to_beat(now()))
    for (int peer = 0; peer < size_; peer++)
      if (watches(peer)) send_watch(peer, WatchKind::beat);
  const int silent = watch_.silent_rank(now());
  if (failing_) return;
  if (silent >= 0) {
    stopped_ = peers_[to_size(silent)].lost = true;
    return begin_failure(described(silent, fmt::format("not heard for {:g} s", options_.timeout) + activity()), false);
  }
  for (int peer = 1; rank_ > 0 && peer < size_; peer++)
    if (const Peer& p = peers_[to_size(peer)]; p.lost && transfers_ > 0 && now() - p.lost_at > options_.timeout)
      return begin_failure(described(peer, "the connection was lost"), false);
}

void CommunicationThread::begin_failure(const std::string& line, bool reported) {
  if (failing_) return;
  failing_ = true;
  failed_at_ = now();
  if (rank_ == 0) {
    for (int peer = 1; peer < size_; peer++)
      if (!peers_[to_size(peer)].ended) send_watch(peer, WatchKind::failure, line);
  } else if (reported && !said_end_) {
    send_watch(0, WatchKind::end);
  }
  const std::lock_guard lock(mailbox_.mutex);
  mailbox_.failed = true;
  mailbox_.failure = line;
  mailbox_.reported = reported;
  mailbox_.changed.notify_all();
}

// Rank 0 passes a failure to all ranks; another rank sends it to rank 0, which confirms it by passing it on.
void CommunicationThread::report_own_failure(const std::string& line) {
  if (rank_ == 0) return begin_failure(line, false);
  if (asked_ || failing_) return;
  asked_ = true;
  send_watch(0, WatchKind::failure, line);
}

bool CommunicationThread::may_end_after_failure() {
  bool acknowledged = false, met = false;
  {
    const std::lock_guard lock(mailbox_.mutex);
    acknowledged = mailbox_.acknowledged;
    met = !mailbox_.hosts.empty();
  }
  const bool others = rank_ == 0 ? all_ended() : messages_ == 0 || peers_[0].lost;
  if (acknowledged && others && !stopped_) return true;
  const double patience = (met ? kPatience : kPatienceAtStart) * (rank_ == 0 ? 1 : 2);
  const bool only_stopped_left = acknowledged && others && (rank_ > 0 || all_lost());
  if (only_stopped_left || now() - failed_at_ > patience) end_process();
  return false;
}

void CommunicationThread::end_process() {
  std::string line;
  {
    const std::lock_guard lock(mailbox_.mutex);
    if (!mailbox_.reported) line = mailbox_.failure;
  }
  if (options_.on_abort && !line.empty()) options_.on_abort(line);
  if (rank_ == 0) transport_.abort(1);
  std::_Exit(1);
}

}  // namespace qkv
