// Taking over what a Python object exports by the Arrow C data interface: __arrow_c_stream__ or __arrow_c_array__. No
// library is imported.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "arrow_chunks.h"

namespace qkv::python {

// Returns the chunks of an object. Signals are handled between them. Use with the GIL held. name: the argument in
// errors. Throws Error if `object` does not export a stream or an array.
ArrowChunks exported(const std::string& name, nanobind::handle object);

// Returns the names of the columns of a table as valid UTF-8. Throws Error for a column.
std::vector<std::string> column_names(const ArrowChunks& table);

}  // namespace qkv::python
