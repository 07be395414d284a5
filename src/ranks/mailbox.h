// Shared by a rank's main thread (communicator.h) and the thread that carries its messages (communication_thread.h).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {

// Bytes to send or to receive. `open` is decremented, with the mutex held, when the transfer has ended.
struct Transfer {
  bool sends = false;
  std::byte* bytes = nullptr;
  size_t size = 0;  // at most QKV_MOST_MESSAGE_BYTES
  int peer = 0;
  int64_t* open = nullptr;
};

// All members but the mutex are used with the mutex held. `changed` is notified after every change.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;

  // Set by the main thread.
  std::vector<Transfer> posted;            // not yet taken
  bool leaving = false;                    // the rank has nothing more to send or to receive
  std::optional<std::string> own_failure;  // an error of this rank, which the others do not know yet
  bool acknowledged = false;               // the main thread waits for the end of a failure
  std::vector<std::string> hosts;          // by rank; empty until they are known
  std::string activity;                    // such as "step 12", for errors; may be empty

  // Set by the communication thread.
  int rank = -1, size = 0;  // once opened
  bool opened = false;
  bool failed = false;    // training cannot continue, for this reason:
  std::string failure;    // one line
  bool reported = false;  // by another rank
  bool closed = false;    // no more memory of transfers is used

  // Returns "rank 2 (host)". The mutex is held.
  std::string label(int peer) const {
    return to_size(peer) < hosts.size() ? fmt::format("rank {} ({})", peer, hosts[to_size(peer)])
                                        : fmt::format("rank {}", peer);
  }
};

}  // namespace qkv
