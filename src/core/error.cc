#include "qkv/error.h"

#include <algorithm>
#include <utility>

namespace qkv {
namespace {

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

}  // namespace

Error::Error(std::string text) : std::runtime_error(one_line(std::move(text))) {}

}  // namespace qkv
