// Bodies of the type multipart/form-data (RFC 7578): what an HTML form with files sends.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct FormPart {
  std::string name;
  std::optional<std::string> filename = {};  // of a file
  std::string type = "text/plain";           // the media type, in lower case and without parameters
  std::string_view bytes = {};               // a part of the body
};

// Whether a Content-Type is multipart/form-data.
bool is_multipart(std::string_view content_type);

// Parses a body whose Content-Type is multipart/form-data. Throws HttpError 400 for another type, a boundary that is
// not 1 to 70 characters of RFC 2046, more than 64 parts, a part with more than 16 headers or 4 KiB of them, without a
// name, or in a transfer coding, names that are not UTF-8, and a body that does not end with its boundary.
std::vector<FormPart> parse_multipart(std::string_view content_type, std::string_view body);

}  // namespace qkv
