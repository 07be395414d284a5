#include "convert/hub/client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr int kMaxRedirects = 10;
constexpr auto kSlice = std::chrono::milliseconds(100);  // between calls of on_download while waiting

bool describes_file(const HttpResponse& response) {
  return !response.header("x-linked-etag").empty() || !response.header("etag").empty();
}

// Returns what a server said about its refusal, as an addition to an error.
std::string message_of(const HttpResponse& response) {
  const std::string& text = response.header("x-error-message");
  return text.empty() ? "" : "; the hub says: " + excerpt(text);
}

bool is_temporary(const HttpResponse& response) {
  if (response.failure != HttpResponse::Failure::none) return response.failure == HttpResponse::Failure::interrupted;
  constexpr int kStatuses[] = {408, 429, 500, 502, 503, 504};
  return std::ranges::find(kStatuses, response.status) != std::end(kStatuses);
}

}  // namespace

HubClient::HubClient(HubName name, const HubSettings& settings, OnDownload on_download)
    : name_(std::move(name)),
      settings_(settings),
      on_download_(std::move(on_download)),
      source_("hf:" + name_.repository) {}

std::string HubClient::description_url() const {
  return fmt::format("{}/api/models/{}/revision/{}", settings_.endpoint, name_.repository,
                     percent_encode(name_.revision));
}

std::string HubClient::file_url(const std::string& commit, const std::string& file) const {
  return fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, name_.repository, commit, percent_encode(file, "/"));
}

HttpResponse HubClient::send(HttpRequest request, TakeBody take) {
  if (!http_) http_.emplace(settings_);
  for (int redirects = 0; redirects <= kMaxRedirects; redirects++) {
    request.token = same_origin(request.url, settings_.endpoint) ? settings_.token : "";
    HttpResponse response = http_->send(request, take, [&] { report(); });
    if (response.failure != HttpResponse::Failure::none || response.location.empty()) return response;
    if (request.head && describes_file(response) && !same_origin(response.location, settings_.endpoint))
      return response;
    if (scheme_of(request.url) == "https" && scheme_of(response.location) != "https")
      fail("{}: redirects must keep https (is redirected to {})", source_,
           excerpt(without_password(response.location)));
    request.url = response.location;
  }
  fail("{}: more than {} redirects", source_, kMaxRedirects);
}

void HubClient::wait_or_fail(const HttpResponse& response, int attempt, const std::string& file) {
  const std::optional<double> seconds = wait_before_retry(response, attempt);
  if (!seconds) refuse(response, file);
  const std::string why =
      response.failure == HttpResponse::Failure::none ? fmt::format("status {}", response.status) : response.reason;
  pause(*seconds, why);
}

void HubClient::pause(double seconds, const std::string& why) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  progress_.note = fmt::format("{}; next attempt in {} s", why, std::max(1.0, std::round(seconds)));
  while (std::chrono::steady_clock::now() < end) {
    report();
    std::this_thread::sleep_for(kSlice);
  }
  progress_.note.clear();
}

void HubClient::report() const {
  if (on_download_) on_download_(progress_);
}

void HubClient::refuse(const HttpResponse& response, const std::string& file) const {
  const std::string what = file.empty() ? source_ : name_of(file);
  const std::string& code = response.header("x-error-code");
  const int status = response.status;
  const std::string said = message_of(response);
  const bool anonymous = settings_.token.empty();
  const std::string endpoint = without_password(settings_.endpoint);
  if (response.failure == HttpResponse::Failure::unreachable)
    fail("{}: {} cannot be reached: {}; HF_HUB_OFFLINE=1 imports from the cache", what, endpoint, response.reason);
  if (response.failure == HttpResponse::Failure::interrupted)
    fail("{}: the download broke off: {}; the same command continues it", what, response.reason);
  if (response.failure != HttpResponse::Failure::none) fail("{}: cannot be downloaded: {}", what, response.reason);
  if (code == "GatedRepo")
    fail(
        "{}: access is restricted: accept the conditions at {}/{}, and set HF_TOKEN to a token of that account "
        "(status {}, {} token was sent{})",
        what, endpoint, name_.repository, status, anonymous ? "no" : "a", said);
  if (code == "RevisionNotFound") fail("{}: has no revision {} (status {})", source_, excerpt(name_.revision), status);
  if (code == "EntryNotFound")
    fail("{}: has no file {} at revision {} (status {})", source_, excerpt(file), excerpt(name_.revision), status);
  if (status == 401 || status == 404)
    fail("{}: not found at {}: check the name{} (status {}{})", what, endpoint,
         anonymous ? ", and set HF_TOKEN if the model is private" : ", and that HF_TOKEN is valid and may read it",
         status, said);
  if (status == 403)
    fail("{}: access is denied{} (status 403{})", what,
         anonymous ? ": set HF_TOKEN" : ": HF_TOKEN must be a token that may read it", said);
  if (status == 429)
    fail("{}: too many requests: try again in {} s (status 429{}{})", what, seconds_asked(response),
         anonymous ? "; with HF_TOKEN the hub allows more" : "", said);
  fail("{}: {} answers with status {}: try again later{}", what, endpoint, status, said);
}

int64_t seconds_asked(const HttpResponse& response) {
  if (response.retry_after > 0) return response.retry_after;
  if (response.status != 429) return 0;
  const std::string& limit = response.header("ratelimit");  // "api";r=0;t=55
  const size_t place = limit.find(";t=");
  int64_t seconds = 0;
  if (place != std::string::npos) std::from_chars(limit.data() + place + 3, limit.data() + limit.size(), seconds);
  return std::max(seconds, int64_t{0});
}

std::optional<double> wait_before_retry(const HttpResponse& response, int attempt) {
  const int64_t asked = seconds_asked(response);
  if (!is_temporary(response) || attempt >= kMaxAttempts || asked > kMaxWait) return std::nullopt;
  return std::max(static_cast<double>(asked), std::ldexp(kFirstWait, attempt - 1));
}

}  // namespace qkv
