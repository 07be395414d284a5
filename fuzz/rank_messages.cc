// Messages that a process receives from the others that train the same run.
#include "ranks/rank_messages.h"

#include <algorithm>
#include <array>

#include "data/parallel_data.h"
#include "fuzz/reader.h"

namespace qkv::fuzz {
namespace {

constexpr int64_t kPairs = 4;

void read_lists(std::span<const std::byte> message, const ListLimits& limits) {
  while (!message.empty()) {
    const std::vector<int32_t> list = take_list(message, limits);
    require(std::ssize(list) <= limits.most, "a list is no longer than its limit");
    for (const int32_t number : list)
      require(limits.bound == 0 || (number >= 0 && number < limits.bound), "a number is within its limits");
  }
}

// Adds the tokens of a chunk of a text, as a rank does.
void add_tokenized(std::span<const std::byte> message) {
  static const Tokenizer tokenizer = Tokenizer::train({"a b c d e f", "ab cd ef"}, {.vocab_size = 20});
  ParallelData data(tokenizer, tokenizer, 8);
  const ListLimits limits{kPairs * 9, tokenizer.size()};
  TokenizedText text{take_list(message, limits), take_list(message, limits), {}};
  text.skipped.empty = kPairs - static_cast<int64_t>(message.size());
  data.check(text, kPairs);
  data.add(text);
  require(data.size() + text.skipped.empty == kPairs, "a chunk has as many pairs as lines");
  require(data.longest() <= 8, "no pair is too long");
}

}  // namespace
}  // namespace qkv::fuzz

void qkv::fuzz::fuzz_rank_messages(std::string_view bytes) {
  const auto message = std::as_bytes(std::span(bytes));
  attempt([&] { require(read_hello(message).threads > 0, "a rank has threads"); });
  attempt([&] {
    const std::string name = read_file_header(message).name;
    require(name.find('/') == std::string::npos && !name.starts_with('.'), "a file lies in the directory of the run");
  });
  attempt([&] { require(read_value(message).size() <= message.size(), "a value is no longer than its message"); });
  attempt([&] { read_command(message, 0); });
  attempt([&] { require(read_part_header(message, 3, 100).size <= 300, "results are within their limits"); });
  for (const ListLimits& limits : {ListLimits{100, 300}, {100, 70000}, {100}})
    attempt([&] { read_lists(message, limits); });
  attempt([&] { add_tokenized(message); });
  std::array<std::byte, kWatchBytes> watch{};
  std::copy_n(message.begin(), std::min(message.size(), watch.size()), watch.begin());
  require(read_watch_message(watch).text.size() <= kMostWatchText, "a text fits into its message");
}
