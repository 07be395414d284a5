// qkv serve: answers HTTP requests with one or several runs.
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "commands.h"
#include "passed_sockets.h"
#include "qkv/error.h"
#include "qkv/server.h"
#include "server_options.h"
#include "signals.h"

namespace {

constexpr int kLogMilliseconds = 1000;   // that a report waits for a log that blocks
constexpr double kEndSeconds = 3;        // for cancelled requests and the threads to end
constexpr size_t kLongestReport = 4096;  // bytes; a pipe that can be written to takes as many at once

// Prints a line unless the log blocks: signals must be heeded all the same.
void report(const std::string& text) {
  const std::string line = fmt::format("qkv: {}\n", text);
  pollfd log = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&log, 1, kLogMilliseconds) <= 0) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), std::min(line.size(), kLongestReport));
}

// The signals that a thread waits for. They are blocked in all threads, which are started later.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }

  // Returns the next signal; 0 if none comes within the time.
  int wait(double seconds) const {
    const auto whole = static_cast<time_t>(seconds);
    const timespec time{whole, static_cast<long>(1e9 * (seconds - static_cast<double>(whole)))};
    const int signal = sigtimedwait(&set_, nullptr, &time);
    return signal < 0 ? 0 : signal;
  }

 private:
  sigset_t set_ = {};
};

bool ends(int signal) { return signal == SIGINT || signal == SIGTERM; }

bool is_local(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("localhost:") || address.starts_with("[::1]:") ||
         address.starts_with("unix:");
}

// Ends the program at once if a second signal comes.
void wait_unless_ended(const Signals& signals, double seconds, const std::future<void>& served) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end &&
         served.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    if (ends(signals.wait(0.01))) std::_Exit(1);
}

// Ends the program after a time, whatever its threads wait for. Without a thread for it, they must end by themselves.
void end_after(double seconds) try {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::_Exit(1);
  }).detach();
} catch (const std::system_error&) {
}

// Reads keys, certificates and runs again on a thread of its own: a file may be slow, and signals must be heeded.
class Reloads {
 public:
  explicit Reloads(qkv::Server& server) : server_(server) {}

  // Starts a reload, once the one in progress has ended.
  void ask() { wanted_ = true; }
  // Reports the lines of a reload that has ended, and starts the next one.
  void look() {
    if (is_running() && running_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    if (is_running())
      for (const std::string& line : running_.get()) report(line);
    if (!std::exchange(wanted_, false)) return;
    std::packaged_task<std::vector<std::string>()> reload([&server = server_] { return server.reload(); });
    running_ = reload.get_future();
    try {
      std::thread(std::move(reload)).detach();
    } catch (const std::system_error& error) {
      running_ = {};
      report(fmt::format("server: a thread cannot be started: {}", error.code().message()));
    }
  }
  bool is_running() const { return running_.valid(); }

 private:
  qkv::Server& server_;
  bool wanted_ = false;
  std::future<std::vector<std::string>> running_;
};

// Finishes the requests that have arrived. Returns whether all were answered.
bool drain(qkv::Server& server, const Signals& signals, const qkv::ServerOptions& options, std::future<void>& served) {
  end_after(options.drain_delay + options.drain_timeout + kEndSeconds);
  server.refuse_ready();
  wait_unless_ended(signals, options.drain_delay, served);
  server.drain();
  wait_unless_ended(signals, options.drain_timeout, served);
  if (served.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return true;
  const int64_t cancelled = server.cancel();
  report(fmt::format("{} requests were cancelled", cancelled));
  wait_unless_ended(signals, 1, served);
  server.stop();
  return false;
}

template <class F>
std::future<std::invoke_result_t<F>> run_in_thread(F&& f) try {
  return std::async(std::launch::async, std::forward<F>(f));
} catch (const std::system_error& error) {
  throw qkv::Error(fmt::format("server: a thread cannot be started: {}", error.code().message()));
}

// Returns what a function returns that reads files. Ends the program if a signal comes before.
template <class F>
auto wait_for(const Signals& signals, F&& f) {
  std::future<std::invoke_result_t<F>> result = run_in_thread(std::forward<F>(f));
  while (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    if (ends(signals.wait(0.01))) std::_Exit(0);
  return result.get();
}

void serve(const qkv::ServerOptions& options) {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // a long answer goes back to the system when it has been sent
  const Signals signals;
  const std::vector<int> sockets = passed_sockets();
  const auto made = wait_for(signals, [&] { return std::make_unique<qkv::Server>(options); });
  qkv::Server& server = *made;
  const std::vector<std::string> addresses = server.listen(sockets);
  std::future<void> served = run_in_thread([&] { server.serve(); });
  try {
    for (const std::string& line : wait_for(signals, [&] { return server.load(); })) report(line);
  } catch (...) {
    server.stop();
    served.wait();
    throw;
  }
  const size_t models = options.runs.size() + options.pivot.size();
  for (const std::string& address : addresses)
    report(fmt::format("serving {} model{} on {}://{}", models, models == 1 ? "" : "s",
                       options.tls_cert.empty() || address.starts_with("unix:") ? "http" : "https", address));
  if (options.api_keys.empty() && !std::all_of(addresses.begin(), addresses.end(), is_local))
    report("warning: anybody who reaches these addresses can use the models (see --api-keys)");
  Reloads reloads(server);
  while (served.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    const int signal = signals.wait(reloads.is_running() ? 0.05 : 1);
    if (signal == SIGHUP) reloads.ask();
    if (ends(signal)) break;
    reloads.look();
  }
  const bool drained = drain(server, signals, options, served);
  served.wait();
  if (reloads.is_running()) std::_Exit(drained ? 0 : 1);  // it uses the server
  if (!drained) throw Interrupted{1};
  served.get();
}

}  // namespace

void add_serve_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("serve", "Answer HTTP requests with one or several runs");
  const auto options = std::make_shared<qkv::ServerOptions>();
  add_server_options(*command, *options);
  command->callback([options] {
    if (options->runs.empty())
      throw CLI::ValidationError("serve: no run to serve (usage: qkv serve [NAME=]RUN... [OPTIONS])");
    try {
      qkv::check(*options);
    } catch (const qkv::Error& error) {
      throw CLI::ValidationError(error.what());
    }
    serve(*options);
  });
}
