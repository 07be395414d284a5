// Ranks that are forked from a test and connected by the plugin qkv_local.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "core/fail.h"
#include "qkv/system.h"
#include "ranks/communicator.h"
#include "ranks/launcher.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {

// Calls f on each of `size` ranks, which are processes. Returns on how many f did not return true.
inline int failures_on_ranks(int size, const std::function<bool(Communicator&)>& f, double timeout = 300) {
  const TempDir directory;
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < size; rank++) {
    const pid_t child = ::fork();
    if (child > 0) ranks.push_back(child);
    if (child != 0) continue;
    set_threads(1);  // a process that was forked cannot use the threads of its parent
    ::setenv("QKV_LOCAL_SIZE", std::to_string(size).c_str(), 1);
    ::setenv("QKV_LOCAL_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("QKV_LOCAL_DIRECTORY", directory.path().c_str(), 1);
    bool holds = false;
    try {
      Communicator communicator(load_transport(QKV_LOCAL_PLUGIN), size, "the test", {.timeout = timeout});
      holds = f(communicator);
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
    }
    ::_exit(holds ? 0 : 1);
  }
  int failures = size - static_cast<int>(ranks.size());
  for (const pid_t rank : ranks) {
    int status = 0;
    failures += ::waitpid(rank, &status, 0) != rank || status != 0;
  }
  return failures;
}

}  // namespace qkv::testing
