// Results of items that are dealt out to processes.
#include "ranks/rank_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/fail.h"
#include "core/to_size.h"
#include "ranks/collectives.h"
#include "tests/support/forked_ranks.h"

namespace qkv {
namespace {

using testing::failures_on_ranks;
using Lists = std::vector<std::vector<int32_t>>;

struct Result {
  double value = 0;
  int64_t item = -1;

  bool operator==(const Result&) const = default;
};

Result result_of(int64_t item) { return {1.0 / static_cast<double>(item + 1), item}; }

std::vector<int32_t> list_of(int64_t item) {
  std::vector<int32_t> list(to_size(item % 4));
  std::iota(list.begin(), list.end(), static_cast<int32_t>(item));
  return list;
}

// Returns the line of the error that ends f, which fails on this rank or on another one.
std::string failure_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RankPartition, OfOneProcessIsAllItems) {
  const RankPartition partition;
  std::vector<int64_t> own;
  partition.for_own(3, [&](int64_t item) { own.push_back(item); });
  EXPECT_EQ(own, (std::vector<int64_t>{0, 1, 2}));
  std::vector<int64_t> results = {4, 5, 6};
  partition.all_gather(std::span(results));
  EXPECT_EQ(results, (std::vector<int64_t>{4, 5, 6}));
}

TEST(RankPartition, GivesAllRanksTheResultsOfAll) {
  const auto shares = [](Communicator& communicator) {
    const RankPartition partition(communicator);
    bool same = true;
    for (const int64_t items : {0, 1, 2, 7, 50}) {
      std::vector<Result> results(to_size(items));
      Lists lists(results.size());
      partition.for_own(items, [&](int64_t item) {
        results[to_size(item)] = result_of(item);
        lists[to_size(item)] = list_of(item);
      });
      partition.all_gather(std::span(results));
      partition.all_gather_lists(lists, {3, 70});
      for (int64_t item = 0; item < items; item++)
        same &= results[to_size(item)] == result_of(item) && lists[to_size(item)] == list_of(item);
    }
    communicator.leave();
    return same;
  };
  for (const int ranks : {2, 3, 5}) EXPECT_EQ(failures_on_ranks(ranks, shares), 0) << ranks;
}

TEST(RankPartition, NamesTheRankWhoseResultIsInvalid) {
  const auto sends_a_large_number = [](Communicator& communicator) {
    communicator.set_hosts({"a", "b"});
    const RankPartition partition(communicator);
    Lists lists(4);
    if (partition.rank() == 1) lists[3] = {7};
    const std::string failure = failure_of([&] {
      partition.all_gather_lists(lists, {1, 7});
      communicator.leave();
    });
    communicator.fail(failure);
    return partition.rank() == 1 || failure == "rank 1 (b): sent the number 7; must be between 0 and 6";
  };
  EXPECT_EQ(failures_on_ranks(2, sends_a_large_number), 0);
}

TEST(RankPartition, RanksWithDifferentItemsFail) {
  const auto differ = [](Communicator& communicator) {
    communicator.set_hosts({"a", "b"});
    const RankPartition partition(communicator);
    std::vector<int64_t> results(partition.rank() == 0 ? 4 : 6);
    const std::string failure = failure_of([&] { partition.all_gather(std::span(results)); });
    communicator.fail(failure);
    return failure == (partition.rank() == 0 ? "rank 1 (b): sent results for 3 items; expected 2"
                                             : "rank 0 (a): sent results for 2 items; expected 3");
  };
  EXPECT_EQ(failures_on_ranks(2, differ), 0);
}

TEST(Spread, GivesAllRanksTheBytesOfRank0) {
  const auto spreads = [](Communicator& communicator) {
    bool same = true;
    for (const size_t size : {0, 1, 2, 1000}) {
      std::vector<std::byte> expected(size);
      for (size_t i = 0; i < size; i++) expected[i] = static_cast<std::byte>(i * 7 + 1);
      std::vector<std::byte> bytes = communicator.rank() == 0 ? expected : std::vector<std::byte>(size);
      spread(communicator, bytes);
      same &= bytes == expected;
    }
    communicator.leave();
    return same;
  };
  for (const int ranks : {2, 3}) EXPECT_EQ(failures_on_ranks(ranks, spreads), 0) << ranks;
}

}  // namespace
}  // namespace qkv
