// Functions that several commands share.
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "commands.h"
#include "qkv/error.h"
#include "qkv/output_file.h"
#include "qkv/threads.h"

namespace {

std::atomic<bool> was_interrupted = false;

}  // namespace

void listen_for_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1})
    std::signal(signal, [](int number) {
      was_interrupted = true;
      std::signal(number, SIG_DFL);
    });
}

bool interrupted() { return was_interrupted; }

void stop_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

void add_threads_option(CLI::App& command) {
  command.add_option_function<int>("--threads", qkv::set_threads, "Threads [default one per processor]")
      ->check(CLI::Range(1, 1024))
      ->take_last();
}

void print_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw qkv::Error(fmt::format("standard output: {}", std::strerror(errno)));
}

void flush_out() {
  if (std::fflush(stdout) != 0) throw qkv::Error(fmt::format("standard output: {}", std::strerror(errno)));
}

void write_json_line(const nlohmann::ordered_json& json) {
  print_out(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (file) try {
      return {std::istreambuf_iterator<char>(file), {}};
    } catch (const std::ios_base::failure&) {  // a directory, for instance
    }
  throw qkv::Error(fmt::format("{}: cannot be read", path));
}

void write_text_file(const std::string& path, const std::string& text) {
  qkv::OutputFile file(path);
  file.write(text);
  file.commit();
}
