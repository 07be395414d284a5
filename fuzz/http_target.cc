// The target of an HTTP request: a path that is decoded once and leads nowhere else.
#include "serve/http/http_target.h"

#include "fuzz/reader.h"

void qkv::fuzz::fuzz_http_target(std::string_view bytes) {
  const HttpTarget target = parse_target(bytes);
  require(target.path == "*" || target.path.starts_with('/'), "a path begins with /");
  for (const char* wrong : {"/../", "/./"})
    require((target.path + "/").find(wrong) == std::string::npos, "a path has no segment . or ..");
  require(target.path.find('\0') == std::string::npos, "a path has no NUL");
  require(target.path.size() <= bytes.size() + 1, "decoding makes nothing longer");
}
