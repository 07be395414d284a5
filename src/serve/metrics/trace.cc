#include "serve/metrics/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace qkv {
namespace {

constexpr size_t kTraceDigits = 32, kSpanDigits = 16, kLength = 2 + 1 + kTraceDigits + 1 + kSpanDigits + 1 + 2;

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == text.npos; }

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  if (header.size() != kLength || !header.starts_with("00-")) return {};
  const std::string_view trace = header.substr(3, kTraceDigits), parent = header.substr(36, kSpanDigits),
                         flags = header.substr(53);
  if (header[35] != '-' || header[52] != '-') return {};
  if (!is_lower_hex(trace) || !is_lower_hex(parent) || !is_lower_hex(flags) || is_zero(trace) || is_zero(parent))
    return {};
  const int last = flags[1] <= '9' ? flags[1] - '0' : flags[1] - 'a' + 10;
  return TraceContext{std::string(trace), std::string(parent), last % 2 == 1};
}

std::string new_span() {
  thread_local std::mt19937_64 random(std::random_device{}() | uint64_t{std::random_device{}()} << 32);
  uint64_t span = 0;
  while (span == 0) span = random();
  return fmt::format("{:016x}", span);
}

}  // namespace qkv
