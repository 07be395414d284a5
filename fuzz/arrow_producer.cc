#include "fuzz/arrow_producer.h"

#include "fuzz/reader.h"

namespace qkv::fuzz {
namespace {

using python::ArrowArray;
using python::ArrowArrayStream;
using python::ArrowSchema;

ArrowProducer& producer_of(ArrowArrayStream* stream) { return *static_cast<ArrowProducer*>(stream->private_data); }

// A finding unless a struct was released this often, and what it contains not by itself.
template <class Node>
void check_node(const Node& node, int times) {
  require(node.released == times, "a struct that was delivered is released once, and no other");
  for (const auto& child : node.children) check_node(*child, 0);
  if (node.dictionary) check_node(*node.dictionary, 0);
}

}  // namespace

ArrowProducer::ArrowProducer(ArrowDescription from)
    : flags_(from.byte()),
      schema_status_(static_cast<int8_t>(from.byte())),
      status_(static_cast<int8_t>(from.byte())),
      error_(from.text()),
      schema_(from) {
  for (int chunks = 1 + from.byte() % 4; chunks > 0; chunks--)
    chunks_.push_back(std::make_unique<ArrowArrayNode>(from, schema_));
  if (!(flags_ & 2)) stream_.get_schema = get_schema;
  if (!(flags_ & 4)) stream_.get_next = get_next;
  if (!(flags_ & 8)) stream_.get_last_error = get_last_error;
  stream_.release = release;
  stream_.private_data = this;
}

ArrowSchema& ArrowProducer::deliver_schema() {
  schema_delivered_ = true;
  return schema_.value;
}

ArrowArray& ArrowProducer::deliver_chunk() { return chunks_.at(delivered_++)->value; }

int ArrowProducer::get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  ArrowProducer& self = producer_of(stream);
  if (self.schema_status_ == 0) *out = self.deliver_schema();
  return self.schema_status_;
}

int ArrowProducer::get_next(ArrowArrayStream* stream, ArrowArray* out) {
  ArrowProducer& self = producer_of(stream);
  const bool remains = self.delivered_ < self.chunks_.size();
  *out = remains ? self.deliver_chunk() : ArrowArray();
  return remains ? 0 : self.status_;
}

const char* ArrowProducer::get_last_error(ArrowArrayStream* stream) {
  const ArrowProducer& self = producer_of(stream);
  return self.flags_ & 16 ? nullptr : self.error_.c_str();
}

void ArrowProducer::release(ArrowArrayStream* stream) {
  producer_of(stream).released_++;
  stream->release = nullptr;
}

void ArrowProducer::check_released() const {
  require(released_ == (is_stream() ? 1 : 0), "a stream is released once");
  check_node(schema_, schema_delivered_ ? 1 : 0);
  for (size_t i = 0; i < chunks_.size(); i++) check_node(*chunks_[i], i < delivered_ ? 1 : 0);
}

}  // namespace qkv::fuzz
