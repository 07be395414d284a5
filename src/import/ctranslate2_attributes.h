// Attributes of a CTranslate2 model: small variables among the weights of model.bin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/fail.h"
#include "import/ctranslate2_file.h"
#include "import/foreign_tensors.h"

namespace qkv {

// What is asked for is marked as used. Files before version 4 cannot tell types apart, so a number may have any. Throws
// Error that names the variable, for one that is not what was asked for.
class CTranslate2Attributes {
 public:
  CTranslate2Attributes(const CTranslate2File& file, ForeignTensors& tensors) : file_(file), tensors_(tensors) {}

  // Nothing where there is no such variable.
  std::optional<double> number(const std::string& name);
  // SIDE/name; before revision 5 sides share `name`.
  std::optional<double> number(const std::string& side, const std::string& name);
  int64_t integer(const std::string& side, const std::string& name, int64_t otherwise);
  bool flag(const std::string& name, bool otherwise) { return number(name).value_or(otherwise) != 0; }
  std::string text(const std::string& name, const std::string& otherwise);

  // of("encoder"), which must be of("decoder") too.
  template <class Of>
  auto of_both(const char* name, Of&& of) {
    const auto encoder = of("encoder"), decoder = of("decoder");
    if (encoder != decoder)
      fail("{}: {} is {} in the encoder and {} in the decoder, wanted the same", tensors_.path(), name,
           static_cast<int64_t>(encoder), static_cast<int64_t>(decoder));
    return encoder;
  }

 private:
  const CTranslate2File& file_;
  ForeignTensors& tensors_;
};

}  // namespace qkv
