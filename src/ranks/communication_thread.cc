#include "ranks/communication_thread.h"

#include <algorithm>

#include "core/to_size.h"

namespace qkv {
namespace {

// Seconds between two polls: at least, and at most while bytes are sent, while some are awaited, and otherwise.
constexpr double kLeastPause = 50e-6, kSendingPause = 100e-6, kAwaitingPause = 1e-3, kIdlePause = 20e-3;
// Transfers between two ranks in one direction begin while fewer than these are under way.
constexpr int64_t kOpenTransfers = 2;
constexpr size_t kOpenBytes = size_t{1} << 20;

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

}  // namespace qkv
