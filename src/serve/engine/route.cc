#include "serve/engine/route.h"

#include <algorithm>
#include <array>

#include "core/json.h"

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

std::span<const std::span<const Route>> all_routes() {
  static const std::array all = {classify_routes(), gorse_routes(),  health_routes(), libre_routes(),
                                 metrics_routes(),  native_routes(), openai_routes(), openapi_routes(),
                                 page_routes(),     tei_routes(),    token_routes()};
  return all;
}

RouteMatch find_route(std::string_view method, std::string_view path) {
  const std::vector<std::string_view> wanted = segments(path);
  RouteMatch found;
  for (const std::span<const Route> routes : all_routes())
    for (const Route& route : routes) {
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
