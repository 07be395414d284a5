// Texts and logs of interactions from tables and columns that export Arrow data (arrow_export.h).
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "arrow_export.h"
#include "bindings.h"
#include "qkv/error.h"
#include "qkv/interactions.h"
#include "qkv/jobs.h"

namespace nb = nanobind;

namespace qkv::python {
namespace {

// Returns the text of row i as a str.
nb::object str_at(const ArrowColumn& column, int64_t i) {
  const std::string_view text = column.text(i);
  nb::object found =
      nb::steal(PyUnicode_DecodeUTF8(text.data() ? text.data() : "", static_cast<Py_ssize_t>(text.size()), nullptr));
  if (found.is_valid()) return found;
  PyErr_Clear();
  column.fail_at(i, "the string is not valid UTF-8");
}

// Returns the user or item of row i, as a str or an int.
nb::object id_at(const ArrowColumn& column, int64_t i) {
  return column.type().is_integer() ? nb::object(nb::int_(column.integer(i))) : str_at(column, i);
}

// Returns a column of strings.
nb::list texts(nb::handle object, const std::string& name) {
  ArrowChunks stream = exported(name, object);
  nb::list found;
  while (stream.next()) {
    const ArrowColumn column = stream.column();
    for (int64_t i = 0; i < stream.rows(); i++) found.append(str_at(column, i));
  }
  return found;
}

// Calls f(user, item, time, row) for each event of a table with these columns; `time` is null if it has none.
template <class F>
void for_events(ArrowChunks& stream, const EventColumns& found, F&& f) {
  while (stream.next()) {
    const ArrowColumn user = stream.column(static_cast<size_t>(found.user)),
                      item = stream.column(static_cast<size_t>(found.item));
    std::optional<ArrowColumn> time;
    if (found.time >= 0) time.emplace(stream.column(static_cast<size_t>(found.time)));
    for (int64_t i = 0; i < stream.rows(); i++) f(user, item, time ? &*time : nullptr, i);
  }
}

// The events of a table, in its order.
struct Events {
  std::vector<std::string> columns;  // the names of the columns of user and item
  nb::list users, items;             // of str, or of int if the column has integers
  nb::object times = nb::none();     // of int, as qkv.Recommender takes them; None for a table without times
};

// Returns times as integers, in millionths if any of them has a fraction, as the reader of logs does.
nb::list integers_of(const std::vector<ArrowTime>& times, const std::string& name) {
  bool fractions = false;
  for (const ArrowTime& time : times) fractions = fractions || time.millionths != 0;
  nb::list found;
  for (size_t i = 0; i < times.size(); i++) {
    int64_t value = times[i].whole;
    if (fractions && (__builtin_mul_overflow(value, 1'000'000, &value) ||
                      __builtin_add_overflow(value, times[i].millionths, &value)))
      throw Error(fmt::format("{}, row {} (from 0): the time {} does not fit into 64 bits in millionths", name, i,
                              times[i].whole));
    found.append(value);
  }
  return found;
}

Events read_events(nb::handle table, const std::string& name, const std::vector<std::string>& columns) {
  ArrowChunks stream = exported(name, table);
  const std::vector<std::string> names = column_names(stream);
  const EventColumns found = find_event_columns(names, columns, name);
  Events events;
  std::vector<ArrowTime> times;
  for_events(stream, found, [&](const ArrowColumn& user, const ArrowColumn& item, const ArrowColumn* time, int64_t i) {
    events.users.append(id_at(user, i));
    events.items.append(id_at(item, i));
    if (time) times.push_back(time->time(i));
  });
  events.columns = {names[static_cast<size_t>(found.user)], names[static_cast<size_t>(found.item)]};
  if (found.time >= 0) events.times = integers_of(times, name);
  return events;
}

// Appends an id as a field of CSV.
void append_id(std::string& line, const ArrowColumn& column, int64_t i) {
  if (column.type().is_integer()) {
    fmt::format_to(std::back_inserter(line), "{}", column.integer(i));
    return;
  }
  str_at(column, i);  // checks the encoding
  line += '"';
  for (const char c : column.text(i)) line.append(c == '"' ? 2 : 1, c);
  line += '"';
}

void append_time(std::string& line, const ArrowTime& time) {
  if (time.millionths == 0) {
    fmt::format_to(std::back_inserter(line), ",{}", time.whole);
  } else if (time.whole >= 0) {
    fmt::format_to(std::back_inserter(line), ",{}.{:06}", time.whole, time.millionths);
  } else {  // −2 + 0.75 is written as −1.25
    fmt::format_to(std::back_inserter(line), ",-{}.{:06}", -(time.whole + 1), 1'000'000 - time.millionths);
  }
}

// A file that is written in large parts.
class TextFile {
 public:
  explicit TextFile(const std::string& path) : file_(path) {}
  void write(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPart) flush();
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  static constexpr size_t kPart = size_t{1} << 20;
  void flush() {
    file_.write(text_);
    text_.clear();
  }

  OutputFile file_;
  std::string text_;
};

// Writes the events of a table as CSV with the columns user, item and, if the table has times, time.
void write_events(nb::handle table, const std::string& name, const std::vector<std::string>& columns,
                  const std::string& path) {
  ArrowChunks stream = exported(name, table);
  const EventColumns found = find_event_columns(column_names(stream), columns, name);
  TextFile file(path);
  file.write(found.time < 0 ? "user,item\n" : "user,item,time\n");
  std::string line;
  for_events(stream, found, [&](const ArrowColumn& user, const ArrowColumn& item, const ArrowColumn* time, int64_t i) {
    line.clear();
    append_id(line, user, i);
    line += ',';
    append_id(line, item, i);
    if (time) append_time(line, time->time(i));
    line += '\n';
    file.write(line);
  });
  file.commit();
}

// Writes a column of strings, each followed by a separator: a line break, or what ends a document, and a line break.
// Throws Error for a string that contains the separator.
void write_texts(nb::handle object, const std::string& name, const std::string& path, const std::string& separator) {
  const bool lines = separator == "\n";
  if (separator.empty()) throw Error(fmt::format("{}: strings need a separator (is empty)", name));
  ArrowChunks stream = exported(name, object);
  TextFile file(path);
  while (stream.next()) {
    const ArrowColumn column = stream.column();
    for (int64_t i = 0; i < stream.rows(); i++) {
      str_at(column, i);  // checks the encoding
      const std::string_view text = column.text(i);
      if (lines && text.find_first_of("\n\r") != text.npos) column.fail_at(i, "the string contains a line break");
      if (text.find(separator) != text.npos) column.fail_at(i, fmt::format("the string contains {}", separator));
      file.write(text);
      file.write(separator);
      if (!lines) file.write("\n");
    }
  }
  file.commit();
}

}  // namespace

void bind_tables(nb::module_& m) {
  nb::class_<Events>(m, "Events")
      .def_ro("columns", &Events::columns)
      .def_ro("users", &Events::users)
      .def_ro("items", &Events::items)
      .def_ro("times", &Events::times);
  m.def("arrow_texts", texts);
  m.def("read_events", read_events);
  m.def("write_events", write_events);
  m.def("write_texts", write_texts);
}

}  // namespace qkv::python
