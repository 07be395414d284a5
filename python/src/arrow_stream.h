// Reading what a Python object exports by the Arrow C data interface: __arrow_c_stream__ or __arrow_c_array__. Nothing
// is copied, and no library is imported.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "arrow_abi.h"
#include "arrow_column.h"

namespace qkv::python {

// The chunks of an object. Use with the GIL held.
class ArrowStream {
 public:
  // name: the argument in errors. Throws Error if `object` does not export a stream or an array.
  ArrowStream(std::string name, nanobind::handle object);

  const std::string& name() const { return name_; }
  const ArrowSchema& schema() const { return schema_.value; }
  bool is_table() const;

  // Returns the names of the columns of a table. Throws Error for another object.
  std::vector<std::string> columns() const;

  // Reads the next chunk; false at the end.
  bool next();

  // Return a column of the current chunk: of a table by its index, or an object that is one.
  ArrowColumn column(size_t index) const;
  ArrowColumn column() const;
  int64_t rows() const { return chunk_.value.length; }
  int64_t first_row() const { return first_row_; }  // the number of the chunk's first row

 private:
  void take_stream(nanobind::handle object);
  void take_array(nanobind::handle object);
  void check_stream(int status);
  void check_chunk() const;

  std::string name_;
  ArrowOwner<ArrowArrayStream> stream_;
  ArrowOwner<ArrowSchema> schema_;
  ArrowOwner<ArrowArray> chunk_;
  bool single_ = false;  // the only chunk is there, and was not read yet
  int64_t first_row_ = 0;
};

}  // namespace qkv::python
