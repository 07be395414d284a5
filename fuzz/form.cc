// Fields of application/x-www-form-urlencoded.
#include <fmt/format.h>

#include "fuzz/reader.h"
#include "serve/http/http_target.h"
#include "text/unicode.h"

namespace {

std::string percent_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) encoded += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  return encoded;
}

}  // namespace

void qkv::fuzz::fuzz_form(std::string_view bytes) {
  const FormFields fields = parse_form(bytes);
  std::string again;
  for (const auto& [name, value] : fields) {
    require(find_invalid_utf8(name + value) >= name.size() + value.size(), "fields are UTF-8");
    again += percent_encoded(name) + "=" + percent_encoded(value) + "&";
  }
  require(parse_form(again) == fields, "writing and reading the fields gives the same");
}
