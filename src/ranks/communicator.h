// Messages between the ranks of a training, and the end of all if one fails.
//
// One thread makes all calls of the transport. It carries messages while the main thread computes, and exchanges beats
// with the other ranks, so that a rank that has died or was stopped is noticed. Rank 0 exchanges beats with all others.
// It reports a failure, and its thread passes the failure to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "qkv/error.h"
#include "qkv/transport.h"
#include "ranks/mailbox.h"

namespace qkv {

// A failure that rank 0 reports. The program of this rank ends without a message.
class ReportedElsewhere : public Error {
 public:
  using Error::Error;
};

struct CommunicatorOptions {
  double timeout = 120;  // seconds after which a rank that sends no beat counts as dead
  // Called by another thread with the reason, right before the process is ended together with all others: if ranks do
  // not end by themselves after a failure, or if the main thread of this one does not notice it.
  std::function<void(const std::string&)> on_abort = {};
};

// Not thread-safe, except that transfers make progress on their own.
class Communicator {
 public:
  // Connects the ranks. `expected` is the number of ranks that the launcher states in the variable `source`; 0 if it
  // states none. Throws Error if they cannot be connected or are not as many.
  Communicator(const qkv_transport& transport, int expected, const std::string& source,
               const CommunicatorOptions& options);
  // Ends with a failure of this rank, unless leave() or fail() was called.
  ~Communicator();

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Returns the name of a rank for errors, such as "rank 2 (host)".
  std::string label(int rank);

  // Set the names of the hosts, by rank, and what rank 0 does now, such as "step 12", for errors.
  void set_hosts(std::vector<std::string> hosts);
  void set_activity(std::string activity);

  // Transfers that are waited for together. Their memory must outlive the group.
  class Group {
   public:
    explicit Group(Communicator& communicator) : communicator_(communicator) {}
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    // Begin a transfer. Between two ranks, bytes are received in the order and in the sizes in which they are sent.
    void send(std::span<const std::byte> bytes, int to);
    void receive(std::span<std::byte> bytes, int from);
    // Returns whether all have ended, or waits until they have. Then the group can be used again. Throw Error, or
    // ReportedElsewhere, if a rank has failed.
    bool ended();
    void wait();

   private:
    void post(bool sends, std::byte* bytes, size_t size, int peer);

    Communicator& communicator_;
    int64_t open_ = 0;
  };

  // Waits until all ranks leave.
  void leave();
  // Ends all ranks because of an error of this one. Returns whether rank 0 reports it, so that this one need not. Does
  // nothing if the error came from here.
  bool fail(const std::string& line);

 private:
  [[noreturn]] void throw_failure(std::unique_lock<std::mutex>& lock);
  void wait_until_closed(std::unique_lock<std::mutex>& lock);

  Mailbox mailbox_;
  std::thread messages_;
  int rank_ = 0, size_ = 1;
};

}  // namespace qkv
