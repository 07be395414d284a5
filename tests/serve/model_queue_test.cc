// Places of requests in the queue of a model, and what is refused.
#include "serve/engine/model_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/to_size.h"
#include "serve/metrics/metrics.h"

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
  std::vector<ModelQueue::QueueTicket> places;
  for (int i = 0; i < 256; i++) places.push_back(queue.enter("client", 1, 200, std::chrono::milliseconds(100)));
  EXPECT_EQ(queue.waiting(), 256);
  EXPECT_EQ(code_of(queue, 1, 1), "queue_full");
  places.clear();
  EXPECT_EQ(queue.waiting() + queue.running() + queue.waiting_cost(), 0);
}

TEST(ModelQueue, RefusesMoreTokensOfAClientThanMayWait) {
  Metrics metrics({"/"}, {{"lm", ""}}, 0);
  ClientCounts clients(0);
  ModelQueue queue("lm", {256, 1000}, clients, metrics.model(0));
  auto place = queue.enter("client", 1, 1000, std::chrono::seconds(60));
  EXPECT_EQ(code_of(queue, 1, 1), "too_many_tokens");
  place.start();
  EXPECT_EQ(code_of(queue, 1, 1000), "");
}

TEST(ModelQueue, RefusesARequestThatCouldNeverWait) {
  Metrics metrics({"/"}, {{"lm", ""}}, 0);
  ClientCounts clients(0);
  ModelQueue queue("lm", {256, 1000}, clients, metrics.model(0));
  try {
    queue.enter("client", 1, 1001, std::chrono::seconds(60));
    FAIL();
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_STREQ(error.what(),
                 "model lm: the request needs 1001 tokens, with those that may be generated, more than 1000 "
                 "(queue_tokens)");
  }
}

// Four clients fill the queue; each of them alone leaves room for others.
TEST(ModelQueue, AClientThatHasAllOfItsOwnKeepsNobodyFromWaiting) {
  Metrics metrics({"/"}, {{"lm", ""}}, 0);
  ClientCounts clients(0);
  ModelQueue queue("lm", {4, 1000}, clients, metrics.model(0));
  std::vector<ModelQueue::QueueTicket> places;
  const auto enter = [&](const std::string& client, int64_t texts, int64_t cost) {
    places.push_back(queue.enter(client, texts, cost, std::chrono::seconds(60)));
  };
  for (int i = 0; i < 4; i++) enter("first", 1, 250);
  EXPECT_THROW(queue.check_room("first", 1, 0, std::chrono::seconds(60)), HttpError);
  for (const char* other : {"second", "third"}) enter(other, 4, 1000);
  enter("fourth", 1, 999);
  EXPECT_THROW(queue.check_room("fifth", 1, 2, std::chrono::seconds(60)), HttpError);
  enter("fifth", 1, 1);
  places.clear();
  EXPECT_EQ(queue.waiting() + queue.waiting_cost(), 0);
  enter("first", 4, 1000);
}

// The wait of a client is that of its turn, not that of all that waits.
TEST(ModelQueue, AnotherClientsTextsDoNotMakeAWaitTooLong) {
  Metrics metrics({"/"}, {{"lm", ""}}, 0);
  ClientCounts clients(0);
  ModelQueue queue("lm", {256, 65536}, clients, metrics.model(0));
  std::vector<ModelQueue::QueueTicket> places;
  for (int i = 0; i < 200; i++) places.push_back(queue.enter("many", 1, 100, std::chrono::seconds(60)));
  for (int i = 0; i < 3; i++) {  // 100 tokens in more than half a second, while others wait
    places[to_size(i)].start();
    std::this_thread::sleep_for(std::chrono::milliseconds(i == 0 ? 0 : 550));
    places[to_size(i)].finish();
  }
  EXPECT_THROW(queue.check_room("many", 1, 100, std::chrono::seconds(2)), HttpError);
  queue.check_room("one", 1, 100, std::chrono::seconds(2));
}

TEST(ModelQueue, ACostThatIsKnownLaterIsThatOfWhatRuns) {
  Metrics metrics({"/"}, {{"lm", ""}}, 0);
  ClientCounts clients(0);
  ModelQueue queue("lm", {256, 1000}, clients, metrics.model(0));
  auto place = queue.enter("client", 1, 900, std::chrono::seconds(60));
  place.add_cost(500);  // has not started
  EXPECT_EQ(queue.waiting_cost(), 900);
  place.start();
  place.add_cost(500);
  EXPECT_EQ(queue.waiting_cost(), 0);
  EXPECT_EQ(code_of(queue, 1, 1000), "");  // it waits for nothing that runs
  place.finish();
  EXPECT_EQ(queue.waiting_cost() + queue.running(), 0);
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
