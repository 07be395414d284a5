// When a failed request is sent again.
#pragma once

#include <optional>

#include "convert/hub/http.h"

namespace qkv {

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
