// Requests to the hub: redirects, the token, repeated attempts, and errors for people.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "convert/hub/http.h"
#include "convert/hub/repository.h"
#include "convert/hub/settings.h"
#include "qkv/import.h"

namespace qkv {

using OnDownload = std::function<void(const DownloadProgress&)>;

// The token is sent to the endpoint only. Not thread-safe.
class HubClient {
 public:
  // `on_download` may be empty. It is called with progress() at least about once a second, and may throw.
  HubClient(HubName name, const HubSettings& settings, OnDownload on_download);

  // Returns the URL of the repository's description, and that of a file at a commit.
  std::string description_url() const;
  std::string file_url(const std::string& commit, const std::string& file) const;

  // Sends a request, and follows its redirects. A `head` request stops at a redirect to another host that has the
  // file's properties, because the answer of a storage server lacks them.
  HttpResponse send(HttpRequest request, TakeBody take);

  // Waits before the next attempt, after `attempt` of them. Throws Error if another one is of no use; `file` is the
  // file that was requested, or "".
  void wait_or_fail(const HttpResponse& response, int attempt, const std::string& file);

  // Calls on_download.
  void report() const;
  DownloadProgress& progress() { return progress_; }
  const std::string& source() const { return source_; }                                // "hf:OWNER/NAME"
  std::string name_of(const std::string& file) const { return source_ + "/" + file; }  // for errors

 private:
  [[noreturn]] void refuse(const HttpResponse& response, const std::string& file) const;
  void pause(double seconds, const std::string& why);

  HubName name_;
  HubSettings settings_;
  OnDownload on_download_;
  std::string source_;
  DownloadProgress progress_;
  std::optional<Http> http_;  // made by the first request, so that libcurl is not needed offline
};

constexpr int kMaxAttempts = 5;      // without a byte in between
constexpr int64_t kMaxWait = 300;    // seconds that a server may ask for; the hub counts requests over 5 minutes
constexpr double kFirstWait = 0.25;  // seconds before the second attempt; doubled for each further one

// Returns the seconds to wait before a request is sent again after `attempt` attempts, from 1, or nothing if it must
// not be: for a status that will not change, a server that asks for a longer wait than kMaxWait, or too many attempts.
// Statuses 408, 429, 500, 502, 503 and 504 and broken connections are temporary.
std::optional<double> wait_before_retry(const HttpResponse& response, int attempt);

// Returns the seconds that the server asks to wait: `Retry-After`, or `t` of the header `RateLimit`; 0 is unknown.
int64_t seconds_asked(const HttpResponse& response);

}  // namespace qkv
