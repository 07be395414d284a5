// qkv serve: answers HTTP requests with one or several runs.
#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <thread>

#include "commands.h"
#include "qkv/error.h"
#include "qkv/server.h"

namespace {

struct ServeCommand {
  std::vector<std::string> runs, titles, languages;
  qkv::ServerOptions options;
};

// Splits "NAME=VALUE".
std::pair<std::string, std::string> named(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void serve(ServeCommand& command) {
  std::vector<qkv::ServedRun> runs;
  for (const std::string& run : command.runs) {
    const auto [name, directory] = named(run);
    runs.push_back({directory, name});
  }
  for (const std::string& table : command.titles) {
    const auto [name, path] = named(table);
    for (qkv::ServedRun& run : runs)
      if (run.name == name) run.titles = path;
  }
  if (command.options.listen.empty()) command.options.listen = {"127.0.0.1:8080"};
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  qkv::Server server(runs, command.options);
  const std::vector<std::string> addresses = server.listen();
  std::thread io([&] { server.serve(); });
  server.load();
  for (const std::string& address : addresses)
    fmt::print(stderr, "qkv: serving {} model{} on http://{}\n", runs.size(), runs.size() == 1 ? "" : "s", address);
  int signal = 0;
  sigwait(&signals, &signal);
  server.drain();
  io.join();
}

}  // namespace

void add_serve_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("serve", "Answer HTTP requests");
  const auto options = std::make_shared<ServeCommand>();
  command->add_option("runs", options->runs, "Run directories, each with a name before it: NAME=RUN")->required();
  command->add_option("--titles", options->titles, "NAME=FILE: table of ids and titles of a recommender");
  command->add_option("--listen", options->options.listen, "Address");
  command->add_option("--workers", options->options.workers, "Compute threads");
  command->add_option("--queue-items", options->options.queue_items, "");
  command->callback([options] { serve(*options); });
}
