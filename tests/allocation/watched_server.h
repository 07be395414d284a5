// A server of tiny models whose threads are watched for allocations, and a client of it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/tiny_runs.h"
#include "serve/api/gorse_routes.h"
#include "serve/engine/service.h"
#include "tests/allocation/malloc.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {

// Listens on a socket with a path. The end of the object drains the server.
class WatchedServer {
 public:
  // threads: of a step that computes.
  explicit WatchedServer(int64_t threads = 1)
      : service_(options_in(directory_, threads)), http_({.look = std::chrono::milliseconds(5)}, service_) {
    service_.admission().set_listeners({http_.listen("unix:" + directory_ / "socket")});
    service_.load();
    io_ = std::async(std::launch::async, [this] {
      io.watch();
      http_.run();
    });
    run_there([&](auto done) {
      service_.post([this, done] {
        models_ = service_.models();
        prepare.watch();
        service_.state<GorseState>().events()->append({}, [this, done](const std::string&) {
          file.watch();
          done();
        });
      });
    });
    run_there([&](auto done) {
      models_.front()->push(std::make_shared<CallJob>([this, done] {
        compute.watch();
        done();
      }));
    });
  }
  ~WatchedServer() {
    EXPECT_EQ(service_.cancel_all(), 0);  // no request is left
    service_.begin_draining();
    http_.drain();
    if (io_.wait_for(kPatience) == std::future_status::ready) return;
    ADD_FAILURE() << "drain does not end";
    std::abort();  // the future would wait
  }

  // Sends a request. Returns the answer, as far as it arrives before the connection is closed.
  std::string ask(const std::string& request) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {AF_UNIX, {}};
    (directory_ / "socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
    const timeval patience = {kPatience.count(), 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
    std::string answer;
    char bytes[4096];
    ssize_t size = 0;
    while ((size = ::recv(socket, bytes, sizeof(bytes), 0)) > 0) answer.append(bytes, static_cast<size_t>(size));
    EXPECT_FALSE(size < 0 && errno == EAGAIN) << "no answer, and the connection stays open";
    ::close(socket);
    return answer;
  }

  // Waits until nothing is left of requests. Returns whether it comes to that.
  bool becomes_idle() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!is_idle())
      if (std::chrono::steady_clock::now() > end) return false;
    return true;
  }

  FailingAllocation io, prepare, compute, file;  // of its threads; file: that of the events

 private:
  static constexpr std::chrono::seconds kPatience{60};

  // A job for a compute thread.
  class CallJob : public BatchJob {
   public:
    explicit CallJob(std::function<void()> call) : call_(std::move(call)) {
      on_start = [] {};
      on_done = [](const std::exception_ptr&) {};
    }
    void compute(std::span<BatchJob* const>) override { call_(); }

   private:
    const std::function<void()> call_;
  };

  static ServerOptions options_in(const TempDir& directory, int64_t threads) {
    ServerOptions options;
    options.runs = fuzz::make_tiny_runs(directory.path());
    options.languages = {"mt=en-de"};
    options.events = directory / "events.tsv";
    options.threads = threads;
    options.workers = 1;
    options.cache = 1 << 20;
    options.bodies = options.max_body = 1024;  // so that what is left of some requests stands in the way of others
    options.deadline = 600;
    options.log = LogFormat::none;
    return options;
  }

  // Calls start(done), and waits until a thread of the server has called done.
  template <class Start>
  static void run_there(Start&& start) {
    const auto reached = std::make_shared<std::promise<void>>();
    start([reached] { reached->set_value(); });
    ASSERT_EQ(reached->get_future().wait_for(kPatience), std::future_status::ready);
  }

  bool is_idle() {
    run_there([&](auto done) { service_.post(done); });
    for (const ModelPtr& model : models_)
      if (model->queue.waiting() + model->queue.running() + model->queue.waiting_cost() != 0 ||
          model->cache_sources().cache_reserved() != 0 || model->take_lane(0)->load != 0)
        return false;
    return http_.counts().open == 0 && http_.counts().active == 0;
  }

  const TempDir directory_;
  Service service_;
  HttpServer http_;
  std::vector<ModelPtr> models_;
  std::future<void> io_;
};

}  // namespace qkv::testing
