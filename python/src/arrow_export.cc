#include "arrow_export.h"

#include <fmt/format.h>

#include "bindings.h"
#include "qkv/error.h"

namespace nb = nanobind;

namespace qkv::python {
namespace {

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

// Throws what Python code in a stream, or a signal handler, has raised.
void check_python() {
  if (PyErr_Occurred()) throw nb::python_error();
  handle_signals();
}

}  // namespace

ArrowChunks exported(const std::string& name, nb::handle object) {
  if (nb::hasattr(object, "__arrow_c_stream__")) {
    const nb::object capsule = call(object, "__arrow_c_stream__", name);
    return {name, struct_of<ArrowArrayStream>(capsule, "arrow_array_stream", name), check_python};
  }
  if (!nb::hasattr(object, "__arrow_c_array__"))
    throw Error(fmt::format("{} is of type {}, expected a table or column that can be exported by Arrow", name,
                            nb::inst_name(object).c_str()));
  const nb::object found = call(object, "__arrow_c_array__", name);
  nb::tuple pair;
  if (!nb::try_cast(found, pair) || pair.size() != 2)
    throw Error(fmt::format("{}: __arrow_c_array__ must return two capsules", name));
  auto& schema = struct_of<ArrowSchema>(pair[0], "arrow_schema", name);
  return {name, schema, struct_of<ArrowArray>(pair[1], "arrow_array", name)};
}

std::vector<std::string> column_names(const ArrowChunks& table) {
  std::vector<std::string> names = table.columns();
  for (std::string& name : names) name = text_of(name).c_str();
  return names;
}

}  // namespace qkv::python
