#include "serve/http/origin.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "core/ascii.h"
#include "core/fail.h"
#include "core/json.h"
#include "serve/http/http_reply.h"
#include "serve/http/http_target.h"

namespace qkv {
namespace {

namespace ip = boost::asio::ip;

constexpr size_t kMostRequestedHeaders = 4096;  // bytes of their names

struct HostAndPort {
  std::string host;  // in lower case, without a final dot; an IPv6 address is in brackets
  std::string port;  // "" if none is given
};

HostAndPort split_host(std::string_view text) {
  const size_t bracket = text.find(']'), colon = text.find(':', bracket == text.npos ? 0 : bracket),
               end = std::min(colon, text.size());
  std::string host = ascii_lower(text.substr(0, end));
  if (host.ends_with('.')) host.pop_back();
  return {std::move(host), std::string(text.substr(std::min(end + 1, text.size())))};
}

bool is_address(const std::string& host) {
  boost::system::error_code error;
  if (host.starts_with('[') && host.ends_with(']')) {
    ip::make_address_v6(host.substr(1, host.size() - 2), error);
  } else {
    ip::make_address_v4(host, error);
  }
  return !error;
}

// "https://example.org:8080", in its parts.
struct Origin {
  std::string scheme, host, port;  // port: "" if it is the default of the scheme

  std::string text() const { return scheme + "://" + host + (port.empty() ? "" : ":" + port); }
};

std::string without_default(const std::string& scheme, const std::string& port) {
  return (scheme == "http" && port == "80") || (scheme == "https" && port == "443") ? "" : port;
}

bool is_scheme(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  };
  return !text.empty() && text[0] >= 'a' && text[0] <= 'z' && std::all_of(text.begin(), text.end(), is_allowed);
}

std::optional<Origin> parse_origin(std::string_view text) {
  const size_t end = text.find("://");
  if (end == text.npos) return {};
  const std::string scheme = ascii_lower(text.substr(0, end));
  const std::string_view rest = text.substr(end + 3);
  if (!is_scheme(scheme)) return {};
  try {
    check_host(rest);
  } catch (const HttpError&) {
    return {};
  }
  const HostAndPort place = split_host(rest);
  return Origin{scheme, place.host, without_default(scheme, place.port)};
}

// Whether a page of this origin was served by the host of the request. The scheme is left out: a proxy may add TLS.
bool is_own(const Origin& origin, const HostAndPort& own) {
  return origin.host == own.host && origin.port == without_default(origin.scheme, own.port);
}

// Whether a browser opens the page at / in a tab, after a click on a link say.
bool opens_page(const RequestHead& head) {
  return (head.method == "GET" || head.method == "HEAD") && head.target.path == "/" &&
         head.find("sec-fetch-mode") == "navigate" && head.find("sec-fetch-dest") == "document";
}

// Whether a list of names of headers can be repeated in an answer.
bool is_list_of_names(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == ',' || c == ' ';
  };
  return text.size() <= kMostRequestedHeaders && std::all_of(text.begin(), text.end(), is_allowed);
}

bool is_preflight(const RequestHead& head) {
  return head.method == "OPTIONS" && !head.find("access-control-request-method").empty();
}

}  // namespace

OriginPolicy::OriginPolicy(const std::vector<std::string>& listeners, const std::vector<std::string>& allowed_hosts,
                           const std::vector<std::string>& cors_origins)
    : hosts_({"localhost"}) {
  for (const std::string& listener : listeners)
    if (!listener.starts_with("unix:")) hosts_.push_back(split_host(listener).host);
  for (const std::string& host : allowed_hosts) {
    if (host == "*") {
      allows_all_hosts_ = true;
      continue;
    }
    try {
      qkv::check_host(host);
    } catch (const HttpError&) {
      fail("allow_host must be the name of a host without a port, or * (is {})", excerpt(host));
    }
    const HostAndPort place = split_host(host);
    if (!place.port.empty()) fail("allow_host must be the name of a host without a port, or * (is {})", excerpt(host));
    hosts_.push_back(place.host);
  }
  for (const std::string& text : cors_origins) {
    const auto origin = parse_origin(text);
    if (!origin) fail("cors_origin must be SCHEME://HOST or SCHEME://HOST:PORT (is {})", excerpt(text));
    origins_.push_back(origin->text());
  }
}

bool OriginPolicy::is_listed(std::string_view text) const {
  const auto origin = parse_origin(text);
  return origin && std::find(origins_.begin(), origins_.end(), origin->text()) != origins_.end();
}

void OriginPolicy::check_host(const RequestHead& head) const {
  if (allows_all_hosts_ || head.host.empty()) return;  // without a host: HTTP/1.0, which browsers do not speak
  const std::string host = split_host(head.host).host;
  if (is_address(host) || std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end()) return;
  refuse(421, "this server does not answer for the host {} (see allow_host)", excerpt(host));
}

void OriginPolicy::check(const RequestHead& head) const {
  check_host(head);
  const std::string_view text = head.find("origin"), site = head.find("sec-fetch-site");
  if (!text.empty() && is_listed(text)) return;
  if (site == "same-origin" || site == "none") return;  // the browser has compared, also where a proxy changes the host
  if (site == "cross-site" && !opens_page(head))
    refuse(403, "pages of other sites may not use this server (see cors_origin)");
  if (text.empty()) return;
  const auto origin = parse_origin(text);
  if (!origin || !is_own(*origin, split_host(head.host)))
    refuse(403, "pages of {} may not use this server (see cors_origin)", excerpt(text));
}

std::vector<std::pair<std::string, std::string>> OriginPolicy::headers(const RequestHead& head) const {
  if (origins_.empty()) return {};
  std::vector<std::pair<std::string, std::string>> headers = {{"Vary", "Origin"}};
  const std::string_view origin = head.find("origin");
  if (!is_listed(origin)) return headers;
  headers.emplace_back("Access-Control-Allow-Origin", origin);
  headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, retry-after-ms");
  return headers;
}

std::optional<HttpReply> OriginPolicy::preflight(const RequestHead& head, const std::string& methods) const {
  const std::string_view origin = head.find("origin");
  if (!is_preflight(head) || !is_listed(origin)) return {};
  HttpReply reply = {200, "", "", {}};
  reply.headers = {{"Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"},
                   {"Access-Control-Allow-Origin", std::string(origin)},
                   {"Access-Control-Allow-Methods", methods},
                   {"Access-Control-Max-Age", "600"}};
  const std::string_view requested = head.find("access-control-request-headers");
  if (!requested.empty() && is_list_of_names(requested))
    reply.headers.emplace_back("Access-Control-Allow-Headers", requested);
  return reply;
}

}  // namespace qkv
