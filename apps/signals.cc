#include "signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "bus_error.h"

namespace {

std::atomic<int> caught = 0;  // the first signal
std::atomic<const char*> last_line = nullptr;

void on_signal(int number) {
  int none = 0;
  if (!caught.compare_exchange_strong(none, number)) {
    if (number == SIGHUP || number == SIGPIPE) return;
    std::signal(number, SIG_DFL);
    std::raise(number);
  } else if (const char* line = last_line) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, std::strlen(line));
    ::_exit(status_of_signal(number));
  }
}

void catch_signal(int number) {
  struct sigaction action = {};
  if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

void prepare_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  report_bus_errors();
}

void listen_for_interrupts() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) catch_signal(number);
}

void listen_for_closed_pipes() { catch_signal(SIGPIPE); }

bool interrupted() { return caught != 0; }

void stop_if_interrupted() {
  if (interrupted()) throw interruption();
}

Interrupted interruption() { return {interrupted() ? status_of_signal(caught) : 1}; }

void end_at_once(const char* line) { last_line = line; }
