// The GGUF format of llama.cpp, versions 2 and 3, little-endian:
//
//   file    = "GGUF" version:u32 tensors:u64 pairs:u64 pair… tensor… padding data
//   pair    = key:string type:u32 value
//   string  = bytes:u64 and as many bytes
//   value   = a number, a byte 0 or 1, a string, or type:u32 count:u64 and as many values
//   tensor  = name:string rank:u32 size:u64… type:u32 offset:u64        sizes from the innermost to the outermost
//   data    = the tensors, each at its offset from the beginning; padding aligns the data and each tensor to
//             general.alignment bytes (32 by default)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/weights/tensor_view.h"

namespace qkv {

// The types of metadata, by their numbers in a file.
enum class GgufType { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// A value of the metadata, or an array of them: a checked part of the file.
struct GgufValue {
  GgufType type = GgufType::u8;  // of an array: of its elements
  bool is_array = false;
  uint64_t count = 1;
  std::span<const std::byte> bytes;
};

// The metadata of a file. Values are read by name; those that are read are remembered. Errors begin with the path of
// the file and name the key.
class GgufMetadata {
 public:
  GgufMetadata(std::map<std::string, GgufValue> values, std::string where)
      : values_(std::move(values)), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  bool has(const std::string& key) const { return values_.contains(key); }
  const std::map<std::string, GgufValue>& all() const { return values_; }

  // Return a value. Throw Error if it is missing or has another type. An integer may be stored in any type of integer
  // that holds it, a number in any type of number. A float32 becomes the double of its shortest decimal form.
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  bool flag(const std::string& key) const;
  std::string text(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t otherwise) const { return has(key) ? integer(key) : otherwise; }
  double number(const std::string& key, double otherwise) const { return has(key) ? number(key) : otherwise; }
  bool flag(const std::string& key, bool otherwise) const { return has(key) ? flag(key) : otherwise; }
  std::string text(const std::string& key, const std::string& otherwise) const {
    return has(key) ? text(key) : otherwise;
  }

  // Return an array with at most `most` elements.
  std::vector<std::string> texts(const std::string& key, uint64_t most) const;
  std::vector<float> numbers(const std::string& key, uint64_t most) const;
  std::vector<int64_t> integers(const std::string& key, uint64_t most) const;

 private:
  const GgufValue& at(const std::string& key) const;
  const GgufValue& array(const std::string& key, uint64_t most) const;
  [[noreturn]] void wrong(const std::string& key, const char* expected) const;
  int64_t integer_at(const std::string& key, const GgufValue& value, uint64_t index) const;

  std::map<std::string, GgufValue> values_;
  std::string where_;
};

struct GgufFile {
  uint32_t version = 3;
  GgufMetadata metadata;
  std::map<std::string, TensorView> tensors;
};

bool is_gguf(const std::string& path);  // whether a file begins like this format

// Parses a file. The result refers to the bytes. Throws Error, beginning with `where`, unless every byte matches the
// grammar: keys and names are unique, tensors have one of the types that are supported, lie inside the file one after
// the other, and do not overlap. Allocates at most a small multiple of the number of pairs and tensors.
GgufFile parse_gguf(std::span<const std::byte> bytes, const std::string& where);

}  // namespace qkv
