// Which pages of browsers may use the server. A browser sends requests of any page to any address, also to one that
// only its user can reach, so the host and the origin of a request are checked:
//   Host                     a name that is not the server's own is refused, because a page can let its own name point
//   to
//                            the server (DNS rebinding); an address needs no name
//   Origin, Sec-Fetch-Site   requests of pages of other sites are refused, unless they are listed
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/http_reply.h"
#include "serve/http/request_reader.h"

namespace qkv {

class OriginPolicy {
 public:
  // listeners: "HOST:PORT" or "unix:PATH", whose names are allowed, as is localhost. allowed_hosts: further names
  // without a port, or "*" for all. cors_origins: pages of other sites that may use the server, each as
  // "https://example.org" or "http://example.org:8080". Throws Error for another form.
  OriginPolicy(const std::vector<std::string>& listeners, const std::vector<std::string>& allowed_hosts,
               const std::vector<std::string>& cors_origins);

  // Throws HttpError 421 if the host is not allowed, and 403 for a request of a page of another site that is not
  // listed. A link to the page at / may be followed from any site.
  void check(const RequestHead& head) const;

  // Returns the answer to a request that asks whether another one is allowed (a CORS preflight); nothing for other
  // requests. Called after check. methods: those of the route, "GET, POST".
  std::optional<HttpReply> preflight(const RequestHead& head, const std::string& methods) const;

  // Returns the headers that let a page of a listed origin read the answer; they belong to every answer.
  std::vector<std::pair<std::string, std::string>> headers(const RequestHead& head) const;

 private:
  void check_host(const RequestHead& head) const;
  bool is_listed(std::string_view origin) const;

  bool allows_all_hosts_ = false;
  std::vector<std::string> hosts_, origins_;
};

}  // namespace qkv
