// The thread that carries the messages of a rank: it moves transfers from the mailbox to the transport, watches the
// other ranks, and ends the job in order, or with a failure. Every wait has an end: a rank that is silent, or whose
// connection is lost, is a failure, and after a failure ranks have some seconds to end before they are killed.
//
// It allocates no memory once it has opened the transport, unless more than kMessages are posted at once, or after a
// failure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "qkv/transport.h"
#include "ranks/communicator.h"
#include "ranks/mailbox.h"
#include "ranks/rank_messages.h"
#include "ranks/watch.h"

namespace qkv {

class CommunicationThread {
 public:
  CommunicationThread(const qkv_transport& transport, Mailbox& mailbox, const CommunicatorOptions& options)
      : transport_(transport), mailbox_(mailbox), options_(options), watch_(1, options.timeout, 0) {}

  // Opens the transport, carries messages, and closes the transport. Sets `closed` of the mailbox at its end.
  void run();

 private:
  static constexpr int kWatchTag = 0, kDataTag = 1;
  static constexpr size_t kMessages = 1024;  // that are posted at once, with room from the start
  using Bytes = std::array<std::byte, kWatchBytes>;
  // Transfers that are under way.
  struct Open {
    int64_t count = 0;
    size_t bytes = 0;
  };
  // A peer with which watch messages are exchanged: rank 0, or of rank 0 all others.
  struct Peer {
    Bytes received = {};
    std::array<Bytes, 3> sent = {};  // a message of each kind
    bool beat_pending = false;
    bool ended = false, lost = false;
    double lost_at = 0;             // of a peer of a rank above 0
    std::array<Open, 2> open = {};  // what is received, and sent
  };
  // A request of the transport: a transfer of the main thread, or a watch message.
  struct Request {
    int64_t number = 0;
    int64_t* open = nullptr;  // of a transfer
    int peer = -1;
    bool sends = false, is_beat = false;
    size_t size = 0;  // of a transfer
  };

  bool open();
  void carry();
  bool take_posted();
  bool begin_posted();
  bool begin(const Transfer& transfer);
  bool poll();
  void complete(int64_t number);
  void receive_watch(int peer);
  void send_watch(int peer, WatchKind kind, const std::string& text = "");
  void on_message(int peer);
  void on_transport_error();
  void look();
  void begin_failure(const std::string& line, bool reported);
  void report_own_failure(const std::string& line);
  std::string described(int peer, const std::string& what);
  std::string activity();
  void drop_watch_requests(int peer);
  bool is_done();
  bool may_leave();
  bool may_end_after_failure();
  void rest(bool busy);
  void end_process();
  void close();
  double now() const { return seconds_since(start_); }
  bool watches(int peer) const { return peer != rank_ && (rank_ == 0 || peer == 0); }
  bool all_ended() const;  // said so, or are lost
  bool all_lost() const;   // their processes have ended, or are silent

  const qkv_transport& transport_;
  Mailbox& mailbox_;
  const CommunicatorOptions options_;
  const Clock::time_point start_ = Clock::now();
  Watch watch_;
  int rank_ = 0, size_ = 1;
  std::vector<Peer> peers_;
  std::vector<Transfer> posted_;   // that were not begun yet, in order
  std::vector<Request> requests_;  // in the order of their beginning
  int64_t messages_ = 0;           // watch messages that are being sent
  int64_t transfers_ = 0;          // that have not ended
  bool leaving_ = false, said_end_ = false;
  bool asked_ = false;  // rank 0 was sent a failure of this rank, and has not confirmed it
  bool failing_ = false;
  bool stopped_ = false;  // a rank is silent, and will not end by itself
  double failed_at_ = 0;
  double pause_ = 0;  // seconds until the next poll
};

}  // namespace qkv
