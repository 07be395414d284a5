#include "serve/metrics/log_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

namespace qkv {
namespace {

using nlohmann::ordered_json;

constexpr size_t kLongestText = 256;  // bytes

// Returns JSON without characters that are not printable ASCII, so that text of a client cannot begin a line or control
// a terminal.
std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

std::string time_text(std::chrono::system_clock::time_point time) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[32];
  const std::string begin(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts));
  return fmt::format("{}.{:03}Z", begin, milliseconds % 1000);
}

double milliseconds(double seconds) { return std::round(1e6 * seconds) / 1e3; }

ordered_json fields_of(const RequestRecord& r) {
  ordered_json fields = {{"time", time_text(r.time)}};
  const auto add_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) fields[name] = text.substr(0, kLongestText);
  };
  const auto add_time = [&](const char* name, const std::optional<double>& seconds) {
    if (seconds) fields[name] = milliseconds(*seconds);
  };
  add_text("id", r.id);
  add_text("client", r.client);
  add_text("method", r.method);
  add_text("route", r.route);
  fields["code"] = r.status;
  add_text("model", r.model);
  fields["received_bytes"] = r.received_bytes;
  fields["sent_bytes"] = r.sent_bytes;
  fields["texts"] = r.texts;
  fields["input_tokens"] = r.input_tokens;
  fields["output_tokens"] = r.output_tokens;
  add_time("waiting_ms", r.waiting_seconds);
  add_time("first_token_ms", r.first_seconds);
  add_time("ms", r.seconds);
  add_text("outcome", r.outcome);
  add_text("trace", r.trace);
  add_text("span", r.span);
  return fields;
}

// Returns a text as it is if it is a word, and as JSON otherwise.
std::string word(const ordered_json& value) {
  if (!value.is_string()) return dump(value);
  const std::string& text = value.get_ref<const std::string&>();
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '=' && c != '\\'; };
  return std::all_of(text.begin(), text.end(), is_plain) ? text : dump(value);
}

std::string line_of(const ordered_json& fields, LogFormat format) {
  if (format == LogFormat::none) return "";
  if (format == LogFormat::json) return dump(fields) + "\n";
  std::string line;
  for (const auto& [name, value] : fields.items())
    line += fmt::format("{}{}={}", line.empty() ? "" : " ", name, word(value));
  return line + "\n";
}

}  // namespace

std::string log_line(const RequestRecord& record, LogFormat format) { return line_of(fields_of(record), format); }

std::string dropped_line(int64_t lines, LogFormat format) {
  return line_of({{"time", time_text(std::chrono::system_clock::now())}, {"dropped_lines", lines}}, format);
}

}  // namespace qkv
