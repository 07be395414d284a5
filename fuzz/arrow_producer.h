// A producer that exports Arrow data: a stream of chunks, or one array.
#pragma once

#include "fuzz/arrow_structs.h"

namespace qkv::fuzz {

class ArrowProducer {
 public:
  explicit ArrowProducer(ArrowDescription from);
  ArrowProducer(const ArrowProducer&) = delete;
  ArrowProducer& operator=(const ArrowProducer&) = delete;

  bool is_stream() const { return flags_ % 2 == 0; }
  python::ArrowArrayStream& stream() { return stream_; }

  // Return the structs that are delivered: the schema, and the next chunk. A chunk remains.
  python::ArrowSchema& deliver_schema();
  python::ArrowArray& deliver_chunk();

  const ArrowSchemaNode& schema() const { return schema_; }
  const ArrowArrayNode& chunk() const { return *chunks_.at(delivered_ - 1); }  // the last one that was delivered

  // A finding unless each struct that was delivered was released once, and nothing else.
  void check_released() const;

 private:
  static int get_schema(python::ArrowArrayStream* stream, python::ArrowSchema* out);
  static int get_next(python::ArrowArrayStream* stream, python::ArrowArray* out);
  static const char* get_last_error(python::ArrowArrayStream* stream);
  static void release(python::ArrowArrayStream* stream);

  uint8_t flags_;
  int schema_status_, status_;  // of the first call of get_schema, and of get_next after all chunks
  std::string error_;
  ArrowSchemaNode schema_;
  std::vector<std::unique_ptr<ArrowArrayNode>> chunks_;
  python::ArrowArrayStream stream_ = {};
  bool schema_delivered_ = false;
  size_t delivered_ = 0;  // chunks
  int released_ = 0;      // the stream
};

}  // namespace qkv::fuzz
