#include "ranks/communication_thread.h"

#include <algorithm>
#include <cstdlib>

#include "core/to_size.h"

namespace qkv {
namespace {

// Seconds between two polls: at least, and at most while bytes are sent, while some are awaited, and otherwise.
constexpr double kLeastPause = 50e-6, kSendingPause = 100e-6, kAwaitingPause = 1e-3, kIdlePause = 20e-3;
// Transfers between two ranks in one direction begin while fewer than these are under way.
constexpr int64_t kOpenTransfers = 2;
constexpr size_t kOpenBytes = size_t{1} << 20;
constexpr double kPatience = 10;        // seconds after a failure until ranks are killed
constexpr double kPatienceAtStart = 2;  // the same for ranks that may still wait for one that was lost

}  // namespace

void CommunicationThread::run() {
  if (open()) carry();
  close();
}

bool CommunicationThread::open() {
  const bool opened = transport_.open(&rank_, &size_) == 0;
  const std::lock_guard lock(mailbox_.mutex);
  if (opened) {
    peers_.resize(to_size(size_));
    posted_.reserve(kMessages);
    requests_.reserve(kMessages);
    mailbox_.posted.reserve(kMessages);
    watch_ = Watch(size_, options_.timeout, now());
    mailbox_.rank = rank_;
    mailbox_.size = size_;
    mailbox_.opened = true;
  } else {
    mailbox_.failed = true;
    mailbox_.failure = fmt::format("{}: {}", transport_.name(), transport_.error());
  }
  mailbox_.changed.notify_all();
  return opened;
}

void CommunicationThread::carry() {
  for (int peer = 0; peer < size_; peer++)
    if (watches(peer)) {
      watch_.expect(peer);
      receive_watch(peer);
    }
  while (!is_done()) {
    bool busy = take_posted();
    busy |= poll();
    look();
    rest(busy);
  }
}

// Takes the transfers that the main thread has posted, and learns what else it wants. Returns whether any began.
bool CommunicationThread::take_posted() {
  std::string own;
  {
    const std::lock_guard lock(mailbox_.mutex);
    posted_.insert(posted_.end(), mailbox_.posted.begin(), mailbox_.posted.end());
    transfers_ += std::ssize(mailbox_.posted);
    mailbox_.posted.clear();
    leaving_ = mailbox_.leaving;
    if (mailbox_.own_failure && !asked_ && !failing_) own = *mailbox_.own_failure;
  }
  if (!own.empty()) report_own_failure(own);
  return !failing_ && begin_posted();
}

// Begins transfers in order, few at a time: MPI moves parts of all that have begun, so that with many the first would
// end hardly before the last. Returns whether any began.
bool CommunicationThread::begin_posted() {
  const size_t count = posted_.size();
  size_t left = 0;  // transfers that wait
  for (size_t i = 0; i < count; i++) {
    const Transfer& t = posted_[i];
    const Open& open = peers_[to_size(t.peer)].open[t.sends];
    const bool waits = open.count >= kOpenTransfers && open.bytes >= kOpenBytes;
    if (failing_ || waits || !begin(t)) posted_[left++] = t;
  }
  posted_.resize(left);
  return left < count;
}

bool CommunicationThread::begin(const Transfer& t) {
  int64_t number = 0;
  const int result = t.sends ? transport_.send(t.bytes, t.size, t.peer, kDataTag, &number)
                             : transport_.receive(t.bytes, t.size, t.peer, kDataTag, &number);
  if (result != 0) {
    on_transport_error();
    return false;
  }
  requests_.push_back({number, t.open, t.peer, t.sends, false, t.size});
  Open& open = peers_[to_size(t.peer)].open[t.sends];
  open.count++;
  open.bytes += t.size;
  return true;
}

// Returns whether a transfer ended.
bool CommunicationThread::poll() {
  std::array<int64_t, 64> done;
  const int count = transport_.poll(done.data(), static_cast<int>(done.size()));
  if (count < 0) on_transport_error();
  for (int i = 0; i < count; i++) complete(done[to_size(i)]);
  return count != 0;
}

void CommunicationThread::complete(int64_t number) {
  const auto found = std::ranges::find(requests_, number, &Request::number);
  if (found == requests_.end()) return;
  const Request request = *found;
  requests_.erase(found);
  if (request.open) {
    Open& open = peers_[to_size(request.peer)].open[request.sends];
    open.count--;
    open.bytes -= request.size;
    transfers_--;
    const std::lock_guard lock(mailbox_.mutex);
    if (--*request.open == 0) mailbox_.changed.notify_all();
  } else if (request.sends) {
    if (request.is_beat) peers_[to_size(request.peer)].beat_pending = false;
    messages_--;
  } else {
    on_message(request.peer);
  }
}

bool CommunicationThread::all_ended() const {
  for (int peer = 0; peer < size_; peer++)
    if (const Peer& p = peers_[to_size(peer)]; watches(peer) && !p.ended && !p.lost) return false;
  return true;
}

bool CommunicationThread::all_lost() const {
  for (int peer = 0; peer < size_; peer++)
    if (watches(peer) && !peers_[to_size(peer)].lost) return false;
  return true;
}

bool CommunicationThread::is_done() {
  if (failing_) return may_end_after_failure();
  return leaving_ && transfers_ == 0 && may_leave();
}

// Ranks say the end to rank 0, which says it to all when all have done so.
bool CommunicationThread::may_leave() {
  if (rank_ == 0 && !all_ended()) return false;
  if (!said_end_) {
    said_end_ = true;
    for (int peer = 0; peer < size_; peer++)
      if (watches(peer)) send_watch(peer, WatchKind::end);
  }
  return all_ended() && messages_ == 0;
}

// Sleeps until the next poll: shortly while bytes are under way, and longer the longer nothing happens.
void CommunicationThread::rest(bool busy) {
  const bool sends = std::ranges::any_of(requests_, [](const Request& r) { return r.open && r.sends; });
  const bool awaits = transfers_ > 0 || messages_ > 0 || failing_;
  const double longest = sends ? kSendingPause : awaits ? kAwaitingPause : kIdlePause;
  pause_ = busy ? kLeastPause : std::clamp(pause_ * 1.5, kLeastPause, longest);
  std::unique_lock lock(mailbox_.mutex);
  if (!mailbox_.posted.empty() && !failing_) return;
  mailbox_.changed.wait_for(lock, std::chrono::duration<double>(pause_));
}

void CommunicationThread::close() {
  transport_.close();
  const std::lock_guard lock(mailbox_.mutex);
  mailbox_.closed = true;
  mailbox_.changed.notify_all();
}

// The functions below watch the other ranks, and end the job after a failure.

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
