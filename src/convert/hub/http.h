// Single HTTP requests, by libcurl. Redirects are not followed and nothing is retried here (convert/hub/client.h does).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "convert/hub/settings.h"
#include "core/function_ref.h"

namespace qkv {

struct HttpRequest {
  std::string url;
  bool head = false;       // only the headers
  int64_t begin = 0;       // first byte that is requested; 0 requests the whole without a Range
  std::string token = "";  // sent as `Authorization: Bearer`; "" sends none
};

struct HttpResponse {
  // unreachable: no connection. interrupted: it broke; another attempt may succeed. refused: it cannot.
  enum class Failure { none, unreachable, interrupted, refused };

  int status = 0;
  std::map<std::string, std::string> headers = {};  // by names in lower case
  std::string url = {};                             // that was requested
  std::string location = {};                        // absolute URL of a redirect, or ""
  int64_t retry_after = 0;                          // seconds that the server asks to wait; 0 is unknown
  Failure failure = Failure::none;                  // of the connection
  std::string reason = {};                          // of a failure, for people

  const std::string& header(const std::string& name) const;  // "" if it is missing
  bool ok() const { return failure == Failure::none && (status == 200 || status == 206); }
};

// Receives a part of a body whose status is 200 or 206. Other bodies are dropped.
using TakeBody = FunctionRef<void(const HttpResponse& head, std::string_view part)>;

// Connections that are kept open between requests. Not thread-safe.
class Http {
 public:
  explicit Http(const HubSettings& settings);  // throws Error without libcurl
  ~Http();

  // Sends a request. `alive` is called at least about once a second. Exceptions of `take` and `alive` end the transfer
  // and are passed on.
  HttpResponse send(const HttpRequest& request, TakeBody take, FunctionRef<void()> alive);

 private:
  struct Handle;
  HubSettings settings_;
  std::unique_ptr<Handle> handle_;
};

// Returns whether two URLs have the same scheme, host and port.
bool same_origin(const std::string& a, const std::string& b);

// Returns a URL, valid or not, with *** instead of a name and a password.
std::string without_password(const std::string& url);

// Returns the scheme of a URL, "https", or "" if it is not a valid URL.
std::string scheme_of(const std::string& url);

}  // namespace qkv
