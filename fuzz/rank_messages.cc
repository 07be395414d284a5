// Messages that a process receives from the others that train the same run.
#include "dist/rank_messages.h"

#include <algorithm>
#include <array>

#include "dist/watch_message.h"
#include "fuzz/reader.h"

void qkv::fuzz::fuzz_rank_messages(std::string_view bytes) {
  const auto message = std::as_bytes(std::span(bytes));
  attempt([&] { require(read_hello(message).threads > 0, "a rank has threads"); });
  attempt([&] {
    const std::string name = read_file_header(message).name;
    require(name.find('/') == std::string::npos && !name.starts_with('.'), "a file lies in the directory of the run");
  });
  attempt([&] { require(read_value(message).size() <= message.size(), "a value is no longer than its message"); });
  attempt([&] { read_command(message, 0); });
  std::array<std::byte, kWatchBytes> watch{};
  std::copy_n(message.begin(), std::min(message.size(), watch.size()), watch.begin());
  require(read_watch_message(watch).text.size() <= kMostWatchText, "a text fits into its message");
}
