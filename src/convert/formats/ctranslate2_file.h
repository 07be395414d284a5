// model.bin of CTranslate2, versions 2 to 6. All numbers are little-endian, nothing is aligned.
//
//   file     = version name revision count variable* aliases?       version, revision, count: uint32
//   name     = size bytes                                           size: uint16, of the bytes; the last byte is 0
//   variable = name rank dimension* type size data                  rank: uint8; dimension: uint32
//   version 2, 3: type is the size of an item, uint8, and size the number of items, uint32;
//                 items of 4 bytes are float32, of 2 int16, of 1 int8
//   version 4 on: type is uint8: 0 float32, 1 int8, 2 int16, 3 int32, 4 float16, 5 bfloat16; size in bytes, uint32
//   aliases  = count (name name)*                                   from version 3 on: the first name is an alias of
//   the second
//
// Attributes of a CTranslate2 model: small variables among the weights of model.bin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "convert/formats/foreign_tensors.h"
#include "core/fail.h"
#include "io/weights/tensor_view.h"

namespace qkv {

struct CTranslate2File {
  uint32_t version = 0, revision = 0;
  std::string specification;
  std::map<std::string, TensorView> variables;  // including aliases; views of the bytes
};

// Parses a file. Throws Error, beginning with `where`, unless every byte has its place in the grammar, names are
// unique, aliases refer to variables, names have at most 255 bytes, and there are at most 65,536 of them.
CTranslate2File parse_ctranslate2(std::span<const std::byte> bytes, const std::string& where);

// Reads attributes and marks them as used. Files before version 4 do not say the types of numbers, so a number may have
// any type. Throws Error, naming the variable, for one of the wrong kind.
class CTranslate2Attributes {
 public:
  CTranslate2Attributes(const CTranslate2File& file, ForeignTensors& tensors) : file_(file), tensors_(tensors) {}

  // The number, or nothing if there is no such variable.
  std::optional<double> number(const std::string& name);
  // The number of SIDE/name; before revision 5, both sides share `name`.
  std::optional<double> number(const std::string& side, const std::string& name);
  int64_t integer(const std::string& side, const std::string& name, int64_t otherwise);
  bool flag(const std::string& name, bool otherwise) { return number(name).value_or(otherwise) != 0; }
  std::string text(const std::string& name, const std::string& otherwise);

  // Returns of("encoder"). Throws Error, naming the attribute, if of("decoder") differs.
  template <class Of>
  auto of_both(const char* name, Of&& of) {
    const auto encoder = of("encoder"), decoder = of("decoder");
    if (encoder != decoder)
      fail("{}: {} must be equal in encoder and decoder (is {} and {})", tensors_.path(), name,
           static_cast<int64_t>(encoder), static_cast<int64_t>(decoder));
    return encoder;
  }

 private:
  const CTranslate2File& file_;
  ForeignTensors& tensors_;
};

}  // namespace qkv
