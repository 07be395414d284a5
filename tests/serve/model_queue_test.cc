// Places of requests in the queue of a model, and what is refused.
#include "serve/model_queue.h"

#include <gtest/gtest.h>

#include "serve/metrics.h"

namespace qkv {
namespace {

const RecentRate::Time kRateStart = RecentRate::Time(std::chrono::seconds(1000));

std::string code_of(ModelQueue& queue, int64_t texts, int64_t cost,
                    std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  try {
    queue.enter("client", texts, cost, deadline);
    return "";
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status, 429);
    EXPECT_GE(error.retry_after, std::chrono::seconds(1));
    EXPECT_LE(error.retry_after, std::chrono::seconds(30));
    return error.code;
  }
}

TEST(RecentRate, IsThatOfTheTimeInWhichWorkWaits) {
  RecentRate rate;
  for (int i = 0; i <= 20; i++) rate.add(50, true, kRateStart + i * std::chrono::milliseconds(100));
  EXPECT_DOUBLE_EQ(rate.per_second(kRateStart + std::chrono::seconds(2)), 500);
}

TEST(RecentRate, IsUnknownWhileNothingWaits) {
  RecentRate rate;
  for (int i = 0; i <= 50; i++) rate.add(1, false, kRateStart + i * std::chrono::milliseconds(100));
  EXPECT_EQ(rate.per_second(kRateStart + std::chrono::seconds(5)), 0);
}

TEST(RecentRate, IsUnknownBeforeWorkHasWaitedForASecond) {
  RecentRate rate;
  for (int i = 0; i <= 9; i++) rate.add(50, true, kRateStart + i * std::chrono::milliseconds(100));
  EXPECT_EQ(rate.per_second(kRateStart + std::chrono::seconds(1)), 0);
}

TEST(RecentRate, LeavesOutTimeThatWasSpentOnCancelledWork) {
  RecentRate rate;
  for (int i = 0; i <= 20; i++) rate.add(50, true, kRateStart + i * std::chrono::milliseconds(100));
  rate.skip();
  rate.add(50, true, kRateStart + std::chrono::seconds(6));
  rate.add(50, true, kRateStart + std::chrono::milliseconds(6100));
  EXPECT_DOUBLE_EQ(rate.per_second(kRateStart + std::chrono::milliseconds(6100)), 500);
}

TEST(RecentRate, ForgetsWhatIsTenSecondsAgo) {
  RecentRate rate;
  for (int i = 0; i <= 20; i++) rate.add(50, true, kRateStart + i * std::chrono::milliseconds(100));
  EXPECT_EQ(rate.per_second(kRateStart + std::chrono::seconds(12)), 0);
}

TEST(ModelQueue, AFewRequestsToAnIdleModelDoNotRefuseManyAtOnce) {
  Metrics metrics({"/"}, {{"lm", ""}}, 0);
  ClientCounts clients(0);
  ModelQueue queue("lm", {256, 65536}, clients, metrics.model(0));
  for (int i = 0; i < 3; i++) {
    auto place = queue.enter("client", 1, 16, std::chrono::seconds(60));
    place.start();
    place.finish();
  }
  std::vector<ModelQueue::Place> places;
  for (int i = 0; i < 256; i++) places.push_back(queue.enter("client", 1, 200, std::chrono::milliseconds(100)));
  EXPECT_EQ(queue.waiting(), 256);
  EXPECT_EQ(code_of(queue, 1, 1), "queue_full");
  places.clear();
  EXPECT_EQ(queue.waiting() + queue.running() + queue.waiting_cost(), 0);
}

TEST(ModelQueue, RefusesMoreTokensThanMayWaitButNotAnIdleModelsFirst) {
  Metrics metrics({"/"}, {{"lm", ""}}, 0);
  ClientCounts clients(0);
  ModelQueue queue("lm", {256, 1000}, clients, metrics.model(0));
  auto place = queue.enter("client", 1, 5000, std::chrono::seconds(60));
  EXPECT_EQ(code_of(queue, 1, 1), "too_many_tokens");
  place.start();
  EXPECT_EQ(code_of(queue, 1, 1000), "");
}

TEST(ModelQueue, PartsOfAPlaceAreGivenBackOnce) {
  Metrics metrics({"/"}, {{"lm", ""}}, 0);
  ClientCounts clients(3);
  ModelQueue queue("lm", {}, clients, metrics.model(0));
  auto place = queue.enter("client", 3, 60, std::chrono::seconds(60));
  EXPECT_EQ(code_of(queue, 1, 1), "client_limit");
  EXPECT_THROW(queue.check_room("client", 1, 1, std::chrono::seconds(60)), HttpError);
  queue.check_room("another", 1, 1, std::chrono::seconds(60));  // takes no place
  EXPECT_EQ(queue.waiting(), 3);
  auto first = place.split(10), second = place.split(20);
  first.start();
  first.finish();
  second.leave();
  second.leave();
  EXPECT_EQ(queue.waiting(), 1);
  EXPECT_EQ(queue.waiting_cost(), 30);
  EXPECT_EQ(queue.running(), 0);
  place.leave();
  EXPECT_EQ(queue.waiting() + queue.waiting_cost(), 0);
  EXPECT_EQ(code_of(queue, 3, 3), "");
}

}  // namespace
}  // namespace qkv
