#include "serve/engine/route.h"

#include <algorithm>

#include "core/json.h"
#include "serve/engine/api_family.h"

namespace qkv {
namespace {

std::vector<std::string_view> segments(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool matches(const std::vector<std::string_view>& pattern, const std::vector<std::string_view>& path,
             std::vector<std::string>& parts) {
  if (pattern.size() != path.size()) return false;
  for (size_t i = 0; i < path.size(); i++) {
    if (pattern[i] == "{}")
      parts.emplace_back(path[i]);
    else if (pattern[i] != path[i])
      return false;
  }
  return true;
}

}  // namespace

RouteMatch find_route(std::string_view method, std::string_view path) {
  const std::vector<std::string_view> wanted = segments(path);
  RouteMatch found;
  for (const ApiFamily& family : api_families())
    for (const Route& route : family.routes()) {
      std::vector<std::string> parts;
      if (!matches(segments(route.path), wanted, parts)) continue;
      if (route.method == method || (route.method == "GET" && method == "HEAD"))
        return {&route, std::move(parts), "", route.family};
      if (found.allowed.empty()) found.family = route.family;
      found.allowed += fmt::format("{}{}", found.allowed.empty() ? "" : ", ", route.method);
    }
  return found;
}

}  // namespace qkv
