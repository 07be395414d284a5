#include "passed_sockets.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>

#include "qkv/error.h"

namespace {

constexpr int kFirst = 3;    // after standard input, output and error
constexpr int kMost = 1024;  // sockets

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value ? value : "";
  ::unsetenv(name);
  return text;
}

std::optional<int> number_of(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<int> passed_sockets() {
  const std::string process = take_variable("LISTEN_PID"), text = take_variable("LISTEN_FDS");
  take_variable("LISTEN_FDNAMES");
  if (number_of(process) != ::getpid()) return {};  // they are for another process
  const int count = number_of(text).value_or(-1);
  if (count < 0 || count > kMost)
    throw qkv::Error(fmt::format("LISTEN_FDS must be an integer between 0 and {} (is \"{}\")", kMost, text));
  std::vector<int> descriptors;
  for (int i = 0; i < count; i++) descriptors.push_back(kFirst + i);
  return descriptors;
}
