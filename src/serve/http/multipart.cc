#include "serve/http/multipart.h"

#include <algorithm>
#include <utility>

#include "core/ascii.h"
#include "core/json.h"
#include "serve/http/http_reply.h"
#include "serve/http/http_target.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr size_t kMostParts = 64, kMostPartHeaders = 16, kMostPartHead = 4096, kLongestBoundary = 70;

std::string_view without_spaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

// A value with parameters: `form-data; name="q"; filename="a \"b\".txt"`.
struct HeaderValue {
  std::string value;                                            // in lower case
  std::vector<std::pair<std::string, std::string>> parameters;  // names in lower case

  const std::string* find(std::string_view name) const {
    const auto found = std::ranges::find(parameters, name, &std::pair<std::string, std::string>::first);
    return found == parameters.end() ? nullptr : &found->second;
  }
};

// Reads a string in quotes and drops it from the text. A backslash stands before a quote or another backslash.
std::string read_quoted(std::string_view& text) {
  std::string value;
  for (size_t i = 1; i < text.size(); i++) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) i++;
    value += text[i];
  }
  refuse(400, "a string in quotes does not end ({})", excerpt(text));
}

HeaderValue read_value(std::string_view text) {
  HeaderValue header;
  const std::string_view whole = text;
  const size_t end = std::min(text.find(';'), text.size());
  header.value = ascii_lower(without_spaces(text.substr(0, end)));
  text.remove_prefix(end);
  while (!text.empty()) {
    text = without_spaces(text.substr(1));  // behind ";"
    if (text.empty()) break;
    const size_t equals = std::min(text.find('='), text.size());
    std::string name = ascii_lower(without_spaces(text.substr(0, equals)));
    text = without_spaces(text.substr(std::min(equals + 1, text.size())));
    if (!is_token(name) || header.find(name)) refuse(400, "a header has a wrong parameter ({})", excerpt(whole));
    std::string value;
    if (text.starts_with('"')) {
      value = read_quoted(text);
      text = without_spaces(text);
    } else {
      const size_t value_end = std::min(text.find(';'), text.size());
      value = without_spaces(text.substr(0, value_end));
      text.remove_prefix(value_end);
      if (!is_token(value)) refuse(400, "a header has a wrong parameter ({})", excerpt(whole));
    }
    if (!text.empty() && text[0] != ';') refuse(400, "a header has a wrong parameter ({})", excerpt(whole));
    header.parameters.emplace_back(std::move(name), std::move(value));
  }
  return header;
}

std::string read_boundary(std::string_view content_type) {
  const HeaderValue type = read_value(content_type);
  if (type.value != "multipart/form-data")
    refuse(400, "the type must be multipart/form-data (is {})", excerpt(type.value));
  const std::string* boundary = type.find("boundary");
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
  };
  if (!boundary || boundary->empty() || boundary->size() > kLongestBoundary || boundary->ends_with(' ') ||
      !std::ranges::all_of(*boundary, is_allowed))
    refuse(400, "multipart/form-data must have a boundary of 1 to {} characters", kLongestBoundary);
  return *boundary;
}

std::string checked_name(const std::string& name) {
  if (find_invalid_utf8(name) < name.size()) refuse(400, "names in a form must be UTF-8");
  if (name.find('\0') != name.npos) refuse(400, "names in a form must not hold a NUL");
  return name;
}

void read_part_header(std::string_view line, FormPart& part, bool& is_named) {
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string name = ascii_lower(line.substr(0, colon));
  const bool has_controls =
      std::ranges::any_of(line, [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 127; });
  if (colon == line.size() || !is_token(name) || has_controls)
    refuse(400, "a part of a form has a wrong header ({})", excerpt(line));
  const std::string_view value = line.substr(colon + 1);
  if (name == "content-disposition") {
    const HeaderValue disposition = read_value(value);
    const std::string *given = disposition.find("name"), *filename = disposition.find("filename");
    if (disposition.value != "form-data" || !given || is_named)
      refuse(400, "a part of a form must have one Content-Disposition: form-data with a name");
    is_named = true;
    part.name = checked_name(*given);
    if (filename) part.filename = checked_name(*filename);
  } else if (name == "content-type") {
    part.type = ascii_lower(without_spaces(value.substr(0, value.find(';'))));
  } else if (name == "content-transfer-encoding") {
    const std::string coding = ascii_lower(without_spaces(value));
    if (coding != "7bit" && coding != "8bit" && coding != "binary")
      refuse(400, "a part of a form must not have a transfer coding (has {})", excerpt(coding));
  }
}

// Reads the headers of a part, and drops them from the text.
FormPart read_part_head(std::string_view& text) {
  FormPart part;
  bool is_named = false;
  size_t size = 0;
  for (size_t count = 0;; count++) {
    const size_t end = text.substr(0, kMostPartHead - size + 2).find("\r\n");
    if (end == text.npos || count > kMostPartHeaders)
      refuse(400, "a part of a form must have at most {} headers of {} bytes, and an empty line behind them",
             kMostPartHeaders, kMostPartHead);
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (line.empty()) break;
    size += end;
    read_part_header(line, part, is_named);
  }
  if (!is_named) refuse(400, "a part of a form must have one Content-Disposition: form-data with a name");
  return part;
}

}  // namespace

bool is_multipart(std::string_view content_type) {
  return ascii_lower(without_spaces(content_type.substr(0, content_type.find(';')))) == "multipart/form-data";
}

std::vector<FormPart> parse_multipart(std::string_view content_type, std::string_view body) {
  const std::string delimiter = "\r\n--" + read_boundary(content_type);
  const std::string_view boundary_line = std::string_view(delimiter).substr(2);
  std::vector<FormPart> parts;
  if (body.starts_with("\r\n")) body.remove_prefix(2);
  if (!body.starts_with(boundary_line)) refuse(400, "a form must begin with its boundary");
  body.remove_prefix(boundary_line.size());
  while (!body.starts_with("--")) {
    body.remove_prefix(std::min(body.find_first_not_of(" \t"), body.size()));
    if (!body.starts_with("\r\n")) refuse(400, "a boundary in a form must be followed by a line end");
    body.remove_prefix(2);
    if (parts.size() == kMostParts) refuse(400, "a form must have at most {} parts", kMostParts);
    FormPart part = read_part_head(body);
    if (body.starts_with(boundary_line)) {  // the empty line is the one before the boundary
      body.remove_prefix(boundary_line.size());
    } else {
      const size_t end = body.find(delimiter);
      if (end == body.npos) refuse(400, "a form must end with its boundary");
      part.bytes = body.substr(0, end);
      body.remove_prefix(end + delimiter.size());
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace qkv
