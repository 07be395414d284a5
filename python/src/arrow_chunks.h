// The chunks of a table or column in the Arrow C data interface: a stream, or one array. Nothing is copied. Needs no
// Python, so that the fuzz target `arrow` reads with the same code.
#pragma once

#include <string>
#include <vector>

#include "arrow_abi.h"
#include "arrow_column.h"

namespace qkv::python {

// Not thread-safe. Structs are released once: a chunk when the next one is read, everything at the end.
class ArrowChunks {
 public:
  // Takes over a stream. name: the argument in errors. after_call: called after each call of a function of the stream;
  // an exception that it throws ends the read. Throws Error for an invalid schema.
  ArrowChunks(std::string name, ArrowArrayStream& stream, void (*after_call)());

  // Takes over a single array.
  ArrowChunks(std::string name, ArrowSchema& schema, ArrowArray& array);

  const std::string& name() const { return name_; }
  bool is_table() const;

  // Returns the names of the columns of a table as they are; they may be invalid UTF-8. Throws Error for a column.
  std::vector<std::string> columns() const;

  // Reads the next chunk; false at the end. Throws Error if the stream fails or the chunk does not fit the schema.
  bool next();

  // Return a column of the current chunk: of a table by its index, or the only one. Throw Error if it is invalid.
  ArrowColumn column(size_t index) const;
  ArrowColumn column() const;
  int64_t rows() const { return chunk_.value.length; }

 private:
  void check_schema() const;
  void check_stream(int status);
  void check_chunk() const;

  std::string name_;
  void (*after_call_)() = nullptr;
  ArrowOwner<ArrowArrayStream> stream_;
  ArrowOwner<ArrowSchema> schema_;
  ArrowOwner<ArrowArray> chunk_;
  bool single_ = false;  // the only chunk is there, and was not read yet
  int64_t first_row_ = 0;
};

}  // namespace qkv::python
