// The target of a request, its path and its query; and names in HTTP, which are compared without regard to case.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv {

// Names and values of a form in their order; a name may occur several times.
using FormFields = std::vector<std::pair<std::string, std::string>>;

struct HttpTarget {
  std::string host;  // of the absolute form, such as "example.org:8080"; "" otherwise
  std::string path;  // decoded, begins with "/", and ends with "/" only if it is "/"; or "*"
  FormFields query;
};

// Parses the origin form ("/path?query"), the absolute form ("http://host/path?query") or "*". Percent-encoded bytes
// are decoded once. Throws HttpError 400 for another form, bytes that must be encoded, wrong encodings, text that is
// not UTF-8, NUL, and segments "." and "..".
HttpTarget parse_target(std::string_view target);

// Parses application/x-www-form-urlencoded. Throws HttpError 400 for wrong encodings, text that is not UTF-8, and more
// than 4096 fields.
FormFields parse_form(std::string_view text);

// Throws HttpError 400 unless the text is HOST or HOST:PORT, where HOST is a name, an IPv4 address or "[IPv6]".
void check_host(std::string_view host);

}  // namespace qkv
