// Exchanges between processes that are forked here and connected by the plugin qkv_local.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/random.h"
#include "ranks/collectives.h"
#include "ranks/gradient_exchange.h"
#include "ranks/weight_exchange.h"
#include "tests/support/forked_ranks.h"

namespace qkv {
namespace {

using testing::failures_on_ranks;

constexpr int64_t kRanges[] = {20 * kSliceBlock + 17, 3, 2 * kSliceBlock}, kGap = 5;

struct Gradients {
  std::vector<int64_t> begins;
  int64_t size = 0;

  Gradients() {
    for (const int64_t range : kRanges) {
      begins.push_back(size);
      size += range + kGap;
    }
  }
  std::vector<float> of_shard(int64_t shard, int step) const {
    Random random(static_cast<uint64_t>(step), Stream::test, static_cast<uint64_t>(shard));
    std::vector<float> all(to_size(size));
    for (float& x : all) x = static_cast<float>(random.below(2001)) / 7 - 143;
    return all;
  }
  std::vector<float> sum(const TreeNode& node, int step) const {
    TreeSum tree(node.count, size);
    std::vector<float> leaf;
    for (int64_t i = 0; i < node.count; i++) {
      leaf = of_shard(node.first + i, step);
      tree.add(leaf);
    }
    return leaf;
  }
  // Calls f(first, size) for the slices of a rank, as elements of a gradient.
  template <class F>
  void for_slices_of(const Communicator& c, F&& f) const {
    for (const Slice& slice : slices_of(buckets_of(kRanges, c.size()), c.rank(), c.size()))
      f(begins[to_size(slice.range)] + slice.first, slice.size);
  }
};

TEST(NodesOfRanks, CoverAllShardsOnceInOrder) {
  for (int64_t shards = 1; shards <= 65; shards++)
    for (int ranks = 1; ranks <= shards; ranks++) {
      int64_t next = 0;
      for (const auto& nodes : nodes_of_ranks(shards, ranks)) {
        ASSERT_FALSE(nodes.empty());
        EXPECT_LE(std::ssize(nodes), std::max<int64_t>(1, 2 * kept_sums(shards)));
        for (const TreeNode& node : nodes) {
          EXPECT_EQ(node.first, next);
          next += node.count;
        }
      }
      EXPECT_EQ(next, shards);
    }
}

bool sums_like_one_process(Communicator& communicator, int64_t shards, GradientExchange& exchange) {
  const Gradients gradients;
  const auto nodes_of_all = nodes_of_ranks(shards, communicator.size());
  bool same = true;
  for (int step = 0; step < 3; step++) {
    std::vector<std::vector<float>> nodes;
    std::vector<std::span<float>> sums;
    for (const TreeNode& node : nodes_of_all[to_size(communicator.rank())]) nodes.push_back(gradients.sum(node, step));
    for (auto& node : nodes) sums.emplace_back(node);
    exchange.begin(sums);
    for (int64_t first = gradients.size; first > 0; first -= (step + 1) * kSliceBlock) exchange.advance(first);
    exchange.finish();
    const std::vector<float> expected = gradients.sum({0, shards}, step);
    gradients.for_slices_of(communicator, [&](int64_t first, int64_t size) {
      same &= std::equal(&expected[to_size(first)], expected.data() + first + size, &sums.back()[to_size(first)]);
    });
  }
  communicator.leave();
  return same;
}

TEST(GradientExchange, SumsLikeOneProcess) {
  const auto exchange = [](Communicator& c) {
    const Gradients gradients;
    const std::vector<Slice> buckets = buckets_of(kRanges, c.size());
    GradientExchange all(c, 11, {buckets, gradients.begins});
    return sums_like_one_process(c, 11, all);
  };
  for (const int ranks : {2, 3, 4, 7, 11}) EXPECT_EQ(failures_on_ranks(ranks, exchange), 0) << ranks;
}

bool shares_like_one_process(Communicator& communicator, WeightExchange& exchange, std::span<float> values) {
  const Gradients gradients;
  bool same = true;
  exchange.finish();  // nothing has begun
  for (int step = 0; step < 3; step++) {
    const std::vector<float> expected = gradients.of_shard(0, step);
    const auto is_same = [&](int64_t first, int64_t end) {
      return std::equal(&expected[to_size(first)], expected.data() + end, &values[to_size(first)]);
    };
    gradients.for_slices_of(communicator, [&](int64_t first, int64_t size) {
      std::copy_n(&expected[to_size(first)], size, &values[to_size(first)]);
    });
    exchange.begin();
    for (int64_t end = 0; end < kRanges[0]; end += (step + 1) * kSliceBlock) {
      exchange.wait_until(end);
      same &= is_same(0, end);
    }
    exchange.finish();
    for (size_t range = 0; range < std::size(kRanges); range++)
      same &= is_same(gradients.begins[range], gradients.begins[range] + kRanges[range]);
  }
  communicator.leave();
  return same;
}

TEST(WeightExchange, GivesAllRanksTheWeightsOfTheOwners) {
  const auto exchange = [](Communicator& c) {
    const Gradients gradients;
    const std::vector<Slice> buckets = buckets_of(kRanges, c.size());
    std::vector<float> values(to_size(gradients.size));
    WeightExchange all(c, {buckets, gradients.begins}, values);
    return shares_like_one_process(c, all, values);
  };
  for (const int ranks : {2, 3, 4, 7}) EXPECT_EQ(failures_on_ranks(ranks, exchange), 0) << ranks;
}

TEST(Communicator, CarriesMessagesLargerThanThoseOfTheTransport) {
  const auto exchange = [](Communicator& c) {
    std::vector<std::byte> sent(QKV_MOST_MESSAGE_BYTES + 12345), received(sent.size());
    for (size_t i = 0; i < sent.size(); i++) sent[i] = static_cast<std::byte>(i * 7 + to_size(c.rank()));
    std::vector<ByteParts> parts = {{std::span(sent)}, {std::span(received)}};
    if (c.rank() == 1) std::swap(parts[0], parts[1]);
    share_all(c, parts);
    c.leave();
    for (size_t i = 0; i < sent.size(); i++)
      if (received[i] != static_cast<std::byte>(i * 7 + to_size(1 - c.rank()))) return false;
    return true;
  };
  EXPECT_EQ(failures_on_ranks(2, exchange), 0);
}

TEST(Communicator, AnErrorOfARankEndsAllAndIsReportedByRank0) {
  const auto fail_on_rank_2 = [](Communicator& c) {
    c.set_hosts({"a", "b", "c"});
    const auto meet = [&] {
      std::array<std::byte, 3> met;
      share_all(c, {{std::span(met).subspan(0, 1)}, {std::span(met).subspan(1, 1)}, {std::span(met).subspan(2, 1)}});
    };
    const auto wait_for_rank_2 = [&] {
      std::byte never;
      Communicator::Group group(c);
      group.receive({&never, 1}, 2);
      group.wait();
    };
    if (c.rank() == 2) {
      meet();
      return c.fail("text.en: cannot be opened");
    }
    try {
      meet();  // may meet the failure already
      wait_for_rank_2();
    } catch (const ReportedElsewhere&) {
      return c.rank() == 1;
    } catch (const Error& error) {
      return c.rank() == 0 && std::string(error.what()) == "rank 2 (c): text.en: cannot be opened";
    }
    return false;
  };
  EXPECT_EQ(failures_on_ranks(3, fail_on_rank_2), 0);
}

}  // namespace
}  // namespace qkv
