#include "data/event_log.h"

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/line_file.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int64_t kChunkLines = 1024;
constexpr int64_t kMaxLines = 100;  // largest number of lines in an event with quoted line breaks

}  // namespace

struct EventLog::File {
  explicit File(const std::string& path) : place{path, 0} {}

  Place place;  // the event being read
  EventFormat format = EventFormat::csv;
  EventColumns columns;
  size_t width = 0;                       // columns of every line; 0 before the first line
  std::vector<std::string> keys, values;  // for JSON: user, item and, if present, time
  std::string open;                       // lines of an event with an open quote
  int64_t open_lines = 0;
  Fields fields;
};

EventLog::EventLog(const InteractionOptions& options, ReadReport& report) : options_(options), report_(report) {
  check_columns(options.columns);
}

void EventLog::add_file(const std::string& path) {
  File file(path);
  const LineFile lines(path, kChunkLines, [&](int64_t number, std::string_view line) {
    if (file.open_lines == 0) file.place.line = number;
    add_line(file, line);
  });
  if (file.open_lines > 0) fail("{}: a quote is not closed", file.place.text());
  if (file.width == 0) fail("{}: contains no events", path);
  report_.lines_read += lines.lines();
  for (int64_t chunk = 0; chunk < lines.chunks(); chunk++) sum_.add(lines.bytes(chunk));
}

void EventLog::add_line(File& file, std::string_view line) {
  if (file.open_lines == 0) {
    if (line.find_first_not_of(" \t") == line.npos) {
      report_.blank_lines++;
      return;
    }
    if (file.width == 0) file.format = log_format(line, file.place);
    if (file.format == EventFormat::json) return add_json(file, line);
  } else {
    file.open.append(1, '\n').append(line);
    line = file.open;
  }
  if (split_fields(line, file.format, file.place, file.fields)) {
    add_fields(file);
    file.open_lines = 0;
    return;
  }
  if (file.open_lines++ == 0) file.open = line;
  if (file.open_lines > kMaxLines) fail("{}: a quote is not closed within {} lines", file.place.text(), kMaxLines);
}

void EventLog::add_fields(File& file) {
  const std::vector<std::string_view>& values = file.fields.values;
  if (file.width == 0) {
    file.columns = find_columns(values, options_.columns, file.place);
    begin_file(file, values);
    if (file.columns.header) {
      report_.headers++;
      return;
    }
  }
  if (values.size() != file.width)
    fail("{}: expected {} columns as in the first line (found {})", file.place.text(), file.width, values.size());
  const auto value = [&](int column) { return values[to_size(column)]; };
  add_event(file, value(file.columns.user), value(file.columns.item),
            file.columns.time >= 0 ? value(file.columns.time) : "");
}

void EventLog::add_json(File& file, std::string_view line) {
  if (file.width == 0) begin_json(file, line);
  parse_json_members(line, file.place.text(), file.keys, file.values);
  add_event(file, file.values[0], file.values[1], file.columns.time >= 0 ? file.values[2] : "");
}

void EventLog::begin_json(File& file, std::string_view line) {
  const json object = parse_json(line, file.place.text());
  std::vector<std::string_view> names;
  for (const auto& [name, value] : object.get_ref<const json::object_t&>()) names.push_back(name);
  file.columns = columns_by_name(names, options_.columns, file.place);
  if (!file.columns.found()) fail_unknown(names, file.place);
  for (const int column : {file.columns.user, file.columns.item, file.columns.time})
    if (column >= 0) file.keys.emplace_back(names[to_size(column)]);
  file.values.resize(file.keys.size());
  begin_file(file, names);
}

void EventLog::begin_file(File& file, std::span<const std::string_view> names) {
  file.width = names.size();
  const bool timed = file.columns.time >= 0;
  if (report_.files.empty()) report_.has_times = timed;
  if (timed != report_.has_times)
    fail("{}: expected {} time column as in the first file (found {})", file.place.text(), timed ? "no" : "a",
         timed ? "one" : "none");
  const auto name = [&](int column) {
    if (column < 0) return std::string("none");
    return file.columns.header ? excerpt(names[to_size(column)]) : fmt::format("column {}", column + 1);
  };
  report_.files.push_back(fmt::format("{}: {}, user {}, item {}, time {}", file.place.path, name_of(file.format),
                                      name(file.columns.user), name(file.columns.item), name(file.columns.time)));
}

void EventLog::add_time(const File& file, std::string_view text) {
  const std::optional<EventTime> time = parse_event_time(text);
  if (!time)
    fail("{}: time {} must be a number or a date such as 2024-05-01T10:30:00", file.place.text(), excerpt(text));
  if (!dates_) dates_ = time->date;
  if (*dates_ != time->date)
    fail("{}: time {} must be {} as in the first event", file.place.text(), excerpt(text),
         time->date ? "a number" : "a date");
  if (!times.add(*time))
    fail("{}: with time {} the times exceed 64 bits (all are in millionths if one has a fraction)", file.place.text(),
         excerpt(text));
}

void EventLog::add_event(const File& file, std::string_view user, std::string_view item, std::string_view time) {
  const bool timed = file.columns.time >= 0;
  report_.events_read++;
  if (user.empty() || item.empty() || (timed && time.empty())) {
    report_.incomplete++;
    return;
  }
  if (timed) add_time(file, time);
  event_users.push_back(users.id(user));
  event_items.push_back(items.id(item));
}

}  // namespace qkv
