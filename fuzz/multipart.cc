// A body of multipart/form-data behind a line with its type.
#include "serve/http/multipart.h"

#include <algorithm>

#include "fuzz/reader.h"

namespace {

using namespace qkv;

// A form of these parts, with a boundary that they do not hold.
std::string written_form(const std::vector<FormPart>& parts, const std::string& boundary) {
  const auto quoted = [](const std::string& text) {
    std::string all = "\"";
    for (const char c : text) all += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    return all + "\"";
  };
  std::string body;
  for (const FormPart& part : parts) {
    body += "--" + boundary + "\r\nContent-Disposition: form-data; name=" + quoted(part.name);
    if (part.filename) body += "; filename=" + quoted(*part.filename);
    body += "\r\nContent-Type: " + part.type + "\r\n\r\n";
    body += part.bytes;
    body += "\r\n";
  }
  return body + "--" + boundary + "--";
}

bool is_same(const FormPart& a, const FormPart& b) {
  return a.name == b.name && a.filename == b.filename && a.type == b.type && a.bytes == b.bytes;
}

}  // namespace

void qkv::fuzz::fuzz_multipart(std::string_view bytes) {
  const size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::string_view body = bytes.substr(std::min(line + 1, bytes.size()));
  const std::vector<FormPart> parts = parse_multipart(bytes.substr(0, line), body);
  require(parts.size() <= 64, "parts are bounded");
  const char* done = body.data();
  size_t head = 0;
  for (const FormPart& part : parts) {
    head = std::max(head, 2 * (part.name.size() + part.filename.value_or("").size()) + part.type.size());
    if (part.bytes.empty()) continue;
    require(part.bytes.data() >= done && part.bytes.data() + part.bytes.size() <= body.data() + body.size(),
            "parts are in the body, in order");
    done = part.bytes.data() + part.bytes.size();
  }
  std::string boundary = "b";
  while (body.find("--" + boundary) != body.npos) boundary += "b";
  if (boundary.size() > 70 || head > 4000) return;
  const std::string again = written_form(parts, boundary);
  require(std::ranges::equal(parse_multipart("multipart/form-data; boundary=" + boundary, again), parts, is_same),
          "writing and reading the parts gives the same");
}
