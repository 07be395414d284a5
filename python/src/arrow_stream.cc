#include "arrow_stream.h"

#include <fmt/format.h>

#include <string_view>

#include "bindings.h"
#include "qkv/error.h"

namespace nb = nanobind;

namespace qkv::python {
namespace {

constexpr int64_t kMostColumns = 100'000;

// Returns the struct that a capsule holds. Throws Error for another object.
template <class Struct>
Struct& struct_of(nb::handle capsule, const char* type, const std::string& name) {
  if (!PyCapsule_IsValid(capsule.ptr(), type))
    throw Error(fmt::format("{} exports {}, expected a capsule \"{}\"", name, nb::inst_name(capsule).c_str(), type));
  auto& found = *static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), type));
  if (!found.release) throw Error(fmt::format("{} exports a capsule \"{}\" that was read before", name, type));
  return found;
}

// Calls a method that exports `object`. An exception becomes an Error with its first line, unless a module is missing.
nb::object call(nb::handle object, const char* method, const std::string& name) {
  try {
    return object.attr(method)();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_ImportError)) throw;
    const std::string text = nb::str(error.value()).c_str();
    throw Error(fmt::format("{} cannot be exported by Arrow: {}", name, text.substr(0, text.find('\n'))));
  }
}

}  // namespace

ArrowStream::ArrowStream(std::string name, nb::handle object) : name_(std::move(name)) {
  if (nb::hasattr(object, "__arrow_c_stream__"))
    take_stream(object);
  else if (nb::hasattr(object, "__arrow_c_array__"))
    take_array(object);
  else
    throw Error(fmt::format("{} is of type {}, expected a table or column that can be exported by Arrow", name_,
                            nb::inst_name(object).c_str()));
  if (!schema_.value.format) throw Error(fmt::format("{}: the Arrow schema has no format", name_));
  const int64_t n = schema_.value.n_children;
  if (n < 0 || n > kMostColumns || (n > 0 && !schema_.value.children))
    throw Error(fmt::format("{}: an Arrow schema of {} columns is invalid", name_, n));
  for (int64_t i = 0; i < n; i++)
    if (!schema_.value.children[i]) throw Error(fmt::format("{}: the Arrow schema lacks column {}", name_, i));
}

void ArrowStream::take_stream(nb::handle object) {
  const nb::object capsule = call(object, "__arrow_c_stream__", name_);
  stream_.take(struct_of<ArrowArrayStream>(capsule, "arrow_array_stream", name_));
  if (!stream_.value.get_schema || !stream_.value.get_next)
    throw Error(fmt::format("{}: the Arrow stream lacks a function", name_));
  check_stream(stream_.value.get_schema(&stream_.value, &schema_.value));
}

void ArrowStream::take_array(nb::handle object) {
  const nb::object found = call(object, "__arrow_c_array__", name_);
  nb::tuple pair;
  if (!nb::try_cast(found, pair) || pair.size() != 2)
    throw Error(fmt::format("{}: __arrow_c_array__ must return two capsules", name_));
  schema_.take(struct_of<ArrowSchema>(pair[0], "arrow_schema", name_));
  chunk_.take(struct_of<ArrowArray>(pair[1], "arrow_array", name_));
  single_ = true;
}

void ArrowStream::check_stream(int status) {
  if (PyErr_Occurred()) throw nb::python_error();
  if (status == 0) return;
  const char* text = stream_.value.get_last_error ? stream_.value.get_last_error(&stream_.value) : nullptr;
  const std::string_view message = text ? text : "";
  throw Error(fmt::format("{}: the Arrow stream failed with status {}: {}", name_, status,
                          message.substr(0, message.find('\n'))));
}

bool ArrowStream::is_table() const { return std::string_view(schema_.value.format) == "+s"; }

std::vector<std::string> ArrowStream::columns() const {
  if (!is_table())
    throw Error(fmt::format("{} is a column of the Arrow type \"{}\", expected a table", name_, schema_.value.format));
  std::vector<std::string> names;
  for (int64_t i = 0; i < schema_.value.n_children; i++) {
    const char* column = schema_.value.children[i]->name;
    names.emplace_back(text_of(column ? column : "").c_str());
  }
  return names;
}

bool ArrowStream::next() {
  if (single_) {
    single_ = false;
    check_chunk();
    return true;
  }
  if (!stream_.value.release) return false;
  if (chunk_.value.release) first_row_ += chunk_.value.length;
  chunk_.reset();
  handle_signals();
  check_stream(stream_.value.get_next(&stream_.value, &chunk_.value));
  if (!chunk_.value.release) return false;
  check_chunk();
  return true;
}

// Checks what the columns of a table do not check.
void ArrowStream::check_chunk() const {
  const ArrowArray& chunk = chunk_.value;
  if (chunk.length < 0 || chunk.offset < 0)
    throw Error(
        fmt::format("{}: an Arrow array of length {} and offset {} is invalid", name_, chunk.length, chunk.offset));
  if (!is_table()) return;
  if (chunk.n_children != schema_.value.n_children || (chunk.n_children > 0 && !chunk.children))
    throw Error(fmt::format("{}: an Arrow array has {} columns, and its schema {}", name_, chunk.n_children,
                            schema_.value.n_children));
  if (chunk.null_count == 0 || chunk.n_buffers < 1 || !chunk.buffers || !chunk.buffers[0]) return;
  const auto* valid = static_cast<const uint8_t*>(chunk.buffers[0]);
  for (int64_t i = 0; i < chunk.length; i++)
    if (const int64_t bit = chunk.offset + i; !(valid[bit / 8] >> (bit % 8) & 1))
      throw Error(fmt::format("{}, row {} (from 0): all columns are null", name_, first_row_ + i));
}

ArrowColumn ArrowStream::column(size_t index) const {
  const ArrowArray& chunk = chunk_.value;
  const ArrowSchema& schema = *schema_.value.children[index];
  const std::string where = fmt::format("{}: column \"{}\"", name_, columns()[index]);
  if (!chunk.children[index]) throw Error(fmt::format("{} is missing in an Arrow array", where));
  return {schema, *chunk.children[index], chunk.offset, chunk.length, where, first_row_};
}

ArrowColumn ArrowStream::column() const {
  if (is_table()) throw Error(fmt::format("{} is a table, expected a column of strings", name_));
  return {schema_.value, chunk_.value, 0, chunk_.value.length, name_, first_row_};
}

}  // namespace qkv::python
