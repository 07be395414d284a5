// Attributes of a CTranslate2 model: small variables among the weights of model.bin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convert/formats/ctranslate2_file.h"
#include "convert/formats/foreign_tensors.h"
#include "core/fail.h"

namespace qkv {

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
