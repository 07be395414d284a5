#include "convert/hub/client.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

using Failure = HttpResponse::Failure;

HttpResponse with_status(int status, int64_t retry_after = 0) {
  HttpResponse response;
  response.status = status;
  response.retry_after = retry_after;
  return response;
}

HttpResponse with_failure(Failure failure) {
  HttpResponse response;
  response.failure = failure;
  return response;
}

TEST(Retry, WaitsTwiceAsLongEachTimeAndThenEnds) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    double expected = kFirstWait;
    for (int attempt = 1; attempt < kMaxAttempts; attempt++, expected *= 2)
      EXPECT_EQ(wait_before_retry(with_status(status), attempt), expected) << status;
    EXPECT_EQ(wait_before_retry(with_status(status), kMaxAttempts), std::nullopt) << status;
  }
}

TEST(Retry, WaitsAsLongAsTheServerAsksButNotForHours) {
  EXPECT_EQ(wait_before_retry(with_status(429, 30), 1), 30.0);
  EXPECT_EQ(wait_before_retry(with_status(503, kMaxWait), 1), static_cast<double>(kMaxWait));
  EXPECT_EQ(wait_before_retry(with_status(429, kMaxWait + 1), 1), std::nullopt);
  HttpResponse limited = with_status(429);
  limited.headers["ratelimit"] = "\"api\";r=0;t=55";
  EXPECT_EQ(wait_before_retry(limited, 1), 55.0);
  for (const char* value : {"\"api\";r=0", ";t=", ";t=-5", ";t=x"}) {
    limited.headers["ratelimit"] = value;
    EXPECT_EQ(wait_before_retry(limited, 1), kFirstWait) << value;
  }
}

TEST(Retry, OtherAnswersAreFinal) {
  for (const int status : {400, 401, 403, 404, 416, 501})
    EXPECT_EQ(wait_before_retry(with_status(status), 1), std::nullopt) << status;
  EXPECT_EQ(wait_before_retry(with_failure(Failure::interrupted), 1), kFirstWait);
  EXPECT_EQ(wait_before_retry(with_failure(Failure::unreachable), 1), std::nullopt);
  EXPECT_EQ(wait_before_retry(with_failure(Failure::refused), 1), std::nullopt);
}

}  // namespace
}  // namespace qkv
