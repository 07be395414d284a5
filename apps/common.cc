// Functions that several commands share.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

#include "commands.h"
#include "qkv/error.h"
#include "qkv/output_file.h"
#include "qkv/threads.h"

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

void write_json_line(const nlohmann::ordered_json& json) {
  print_out(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (file) try {
      return {std::istreambuf_iterator<char>(file), {}};
    } catch (const std::ios_base::failure&) {  // a directory, for instance
    }
  throw qkv::Error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
}

void write_text_file(const std::string& path, const std::string& text) {
  qkv::OutputFile file(path);
  file.write(text);
  file.commit();
}
