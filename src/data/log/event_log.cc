#include "data/log/event_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/log/time_format.h"
#include "text/line_file.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr int64_t kSmall = 1'000'000;                               // in seconds, twelve days
constexpr size_t kFew = 20;                                         // distinct values
constexpr int64_t kLeastEvents = 100;                               // of which few distinct values say something
constexpr int64_t kUnits[] = {1, 1'000, 1'000'000, 1'000'000'000};  // of a second
constexpr int64_t kLines = 1000;                                    // in which other columns are examined

// Whether a number is a time between 1973 and 2286 in seconds, milliseconds, microseconds or nanoseconds.
bool is_like_time(std::string_view field) {
  const std::optional<EventTime> time = parse_event_time(field);
  if (!time || time->date) return false;
  return std::ranges::any_of(kUnits, [&](int64_t unit) {
    const int64_t seconds = time->whole / unit;
    return seconds >= 100'000'000 && seconds < 10'000'000'000;
  });
}

using nlohmann::json;

constexpr int64_t kChunkLines = 1024;
constexpr int64_t kMaxLines = 100;  // largest number of lines in an event with quoted line breaks

}  // namespace

void GuessedTime::add(int column, const EventTime& time) {
  column_ = column;
  least_ = events_ == 0 ? time.whole : std::min(least_, time.whole);
  most_ = events_ == 0 ? time.whole : std::max(most_, time.whole);
  events_++;
  dates_ |= time.date;
  if (distinct_.size() <= kFew) distinct_.emplace(time.whole, time.millionths);
}

void GuessedTime::add_line(std::span<const std::string_view> fields) {
  if (lines_ == kLines) return;
  lines_++;
  like_times_.resize(std::max(like_times_.size(), fields.size()));
  for (size_t i = 0; i < fields.size(); i++) like_times_[i] += is_like_time(fields[i]);
}

std::optional<int> GuessedTime::other_time() const {
  std::optional<int> found;
  for (size_t i = 0; i < like_times_.size(); i++)
    if (static_cast<int>(i) != column_ && like_times_[i] == lines_) {
      if (found) return {};
      found = static_cast<int>(i);
    }
  return found;
}

std::string GuessedTime::doubt() const {
  if (events_ == 0 || dates_) return "";
  const bool is_small = least_ > -kSmall && most_ < kSmall,
             is_few = distinct_.size() <= kFew && events_ >= kLeastEvents;
  if (!is_small && !is_few) return "";
  const std::string values =
      distinct_.size() <= kFew ? fmt::format("only {} distinct values, from {} to {}", distinct_.size(), least_, most_)
                               : fmt::format("small values, from {} to {}", least_, most_);
  const std::optional<int> other = other_time();
  std::string remedy = "; if these are ratings or counts, set columns to 1,2 (or to USER,ITEM,TIME)";
  if (other) {
    remedy = fmt::format("; the values of column {} are like times: ", *other + 1);
    remedy += *other > 1 ? fmt::format("set columns to 1,2,{}", *other + 1)
                         : fmt::format("set columns to USER,ITEM,{}, with the numbers of the others", *other + 1);
  }
  return fmt::format("column {} is taken as the time because of its place, but has {}{}", column_ + 1, values, remedy);
}

struct EventLog::File {
  explicit File(const std::string& path) : place{path, 0} {}

  Place place;  // the event being read
  EventFormat format = EventFormat::csv;
  EventColumns columns;
  size_t width = 0;                       // columns of every line; 0 before the first line
  std::vector<std::string> keys, values;  // for JSON: user, item and, if present, time
  std::string open;                       // lines of an event with an open quote
  int64_t open_lines = 0;
  int64_t good_lines = 0, bad_lines = 0;
  Fields fields;
};

EventLog::EventLog(const InteractionOptions& options, ReadReport& report)
    : options_(options),
      report_(report),
      format_(options.separator.empty() ? std::nullopt : std::optional(format_of(options.separator))) {
  check_columns(options.columns);
  if (!options.time_format.empty()) check_time_format(options.time_format);
}

void EventLog::add_file(const std::string& path) {
  File file(path);
  const LineFile lines(path, kChunkLines, [&](int64_t number, std::string_view line) { add_line(file, number, line); });
  while (file.open_lines > 0) {
    const Error error(fmt::format("{}: a quote is not closed", file.place.text()));
    if (!options_.skip_bad_lines) throw error;
    skip_bad_line(file, error);
  }
  if (file.width == 0) fail("{}: contains no events", path);
  check_bad_lines(file);
  report_.lines_read += lines.lines();
  for (int64_t chunk = 0; chunk < lines.chunks(); chunk++) sum_.add(lines.bytes(chunk));
}

void EventLog::add_line(File& file, int64_t number, std::string_view line) {
  if (file.open_lines == 0) file.place.line = number;
  if (!options_.skip_bad_lines || file.width == 0) return add_valid_line(file, line);
  try {
    add_valid_line(file, line);
  } catch (const Error& error) {
    skip_bad_line(file, error);
  }
}

// Skips the line at file.place. If a quote was open since then, the lines after it are read again.
void EventLog::skip_bad_line(File& file, const Error& error) {
  file.bad_lines++;
  if (report_.bad_lines++ == 0) report_.first_bad_line = error.what();
  if (file.open_lines == 0) return;
  const std::string lines = std::exchange(file.open, {});
  file.open_lines = 0;
  int64_t number = file.place.line;
  for (size_t begin = lines.find('\n'); begin != lines.npos;) {
    const size_t end = lines.find('\n', ++begin);
    add_line(file, ++number, std::string_view(lines).substr(begin, end - begin));
    begin = end;
  }
}

void EventLog::check_bad_lines(const File& file) const {
  if (file.bad_lines > file.good_lines)
    fail("{}: {} of {} lines are bad; check columns, separator and time_format (the first: {})", file.place.path,
         file.bad_lines, file.bad_lines + file.good_lines, report_.first_bad_line);
}

void EventLog::add_valid_line(File& file, std::string_view line) {
  if (file.open_lines == 0) {
    if (line.find_first_not_of(" \t") == line.npos) {
      report_.blank_lines++;
      return;
    }
    if (file.width == 0) {
      if (line.starts_with("PAR1") && line.size() > 4 && line[4] != '\t' && line[4] >= 0 && line[4] < ' ')
        fail("{}: not a text{}", file.place.path, encoding_hint(line));
      file.format = format_ ? *format_ : log_format(line, file.place);
    }
    if (file.format == EventFormat::json) return add_json(file, line);
  } else {
    file.open.append(1, '\n').append(line);
    line = file.open;
  }
  if (split_fields(line, file.format, file.place, file.fields, options_.separator)) {
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
  if (file.columns.guessed) guessed_.add_line(values);
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
  const std::string format = file.format == EventFormat::other
                                 ? fmt::format("separated by {}", excerpt(options_.separator))
                                 : std::string(name_of(file.format));
  report_.files.push_back(fmt::format("{}: {}, user {}, item {}, time {}", file.place.path, format,
                                      name(file.columns.user), name(file.columns.item), name(file.columns.time)));
}

EventTime EventLog::parse_time(const File& file, std::string_view text) const {
  const std::string& format = options_.time_format;
  if (const auto time = format.empty() ? parse_event_time(text) : parse_time_by(format, text)) return *time;
  const std::string guessed =
      file.columns.guessed ? fmt::format("; column {} is taken as the time, set columns to USER,ITEM,TIME or USER,ITEM",
                                         file.columns.time + 1)
                           : "";
  if (!format.empty())
    fail("{}: time {} does not match time_format {}{}", file.place.text(), excerpt(text), excerpt(format), guessed);
  fail("{}: time {} must be a number or a date such as 2024-05-01T10:30:00; for others set time_format, such as {}{}",
       file.place.text(), excerpt(text), text.find('.') == text.npos ? "%m/%d/%Y" : "%d.%m.%Y", guessed);
}

void EventLog::add_time(const File& file, std::string_view text) {
  const EventTime time = parse_time(file, text);
  if (dates_.value_or(time.date) != time.date)
    fail("{}: time {} must be {} as in the first event", file.place.text(), excerpt(text),
         time.date ? "a number" : "a date");
  if (!times.add(time))
    fail("{}: with time {} the times exceed 64 bits (all are in millionths if one has a fraction)", file.place.text(),
         excerpt(text));
  dates_ = time.date;
  if (file.columns.guessed) guessed_.add(file.columns.time, time);
}

void EventLog::add_event(File& file, std::string_view user, std::string_view item, std::string_view time) {
  const bool timed = file.columns.time >= 0, complete = !user.empty() && !item.empty() && !(timed && time.empty());
  if (timed && complete) add_time(file, time);
  report_.events_read++;
  file.good_lines++;
  if (!complete) {
    report_.incomplete++;
    return;
  }
  event_users.push_back(users.id(user));
  event_items.push_back(items.id(item));
}

}  // namespace qkv
