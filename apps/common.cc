// Functions that several commands share.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <system_error>

#include "commands.h"
#include "qkv/error.h"
#include "qkv/jobs.h"
#include "qkv/runs.h"
#include "qkv/system.h"

void add_language_options(CLI::App& command, std::string& from, std::string& to) {
  command.add_option("--from", from, "Language of the source, for a model with several: its code, such as en");
  command.add_option("--to", to, "Language of the translation, for a model with several: its code, such as de");
}

qkv::TranslateOptions default_options_with(const std::string& run, const std::string& from, const std::string& to) {
  qkv::TranslateOptions options = qkv::default_translate_options(run);
  options.source_language = from, options.target_language = to;
  return options;
}

bool is_language_model(const std::string& run) {
  const qkv::RunKind kind = qkv::inspect(run).kind;
  if (kind != qkv::RunKind::language_model && kind != qkv::RunKind::translator)
    throw qkv::Error(fmt::format("{} is a run of the kind {}; expected a language model or a translator", run,
                                 names_of(kind)[static_cast<size_t>(kind)]));
  return kind == qkv::RunKind::language_model;
}

void add_threads_option(CLI::App& command) {
  command.add_option_function<int>("--threads", qkv::set_threads, "Threads [default one per processor]")
      ->check(CLI::Range(1, 1024))
      ->take_last();
}

void print_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw std::system_error(errno, std::generic_category(), "standard output");
}

void flush_out() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
}

std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void write_json_line(const nlohmann::ordered_json& json) { print_out(json_line(json)); }

std::string read_input(const std::string& path) {
  return path == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_text_file(path);
}

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string read_text_file(const std::string& path) {
  // O_NONBLOCK: a named pipe is refused, not waited for. One without a name has the name of a descriptor.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const auto fails = [&](std::string_view reason) -> qkv::Error {
    if (file >= 0) close(file);
    return qkv::Error(fmt::format("{}: cannot be read: {}", path, reason));
  };
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0) throw fails(std::strerror(errno));
  const bool is_pipe = S_ISFIFO(status.st_mode) && (path.starts_with("/dev/") || path.starts_with("/proc/"));
  if (!S_ISREG(status.st_mode) && !is_pipe && !S_ISDIR(status.st_mode)) throw fails("it is not a regular file");
  fcntl(file, F_SETFL, O_RDONLY);
  std::string text;
  std::array<char, 1 << 16> buffer;
  ssize_t count = 0;
  while ((count = read(file, buffer.data(), buffer.size())) > 0 || (count < 0 && errno == EINTR))
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
  if (count < 0) throw fails(std::strerror(errno));
  close(file);
  return text;
}

void write_text_file(const std::string& path, const std::string& text) {
  qkv::OutputFile file(path);
  file.write(text);
  file.commit();
}
