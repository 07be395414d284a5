#include "convert/hub/retry.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace qkv {
namespace {

bool is_temporary(const HttpResponse& response) {
  if (response.failure != HttpResponse::Failure::none) return response.failure == HttpResponse::Failure::interrupted;
  constexpr int kStatuses[] = {408, 429, 500, 502, 503, 504};
  return std::ranges::find(kStatuses, response.status) != std::end(kStatuses);
}

}  // namespace

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
