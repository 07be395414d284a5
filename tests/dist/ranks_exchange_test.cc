// Exchanges between processes that are forked here and connected by the plugin qkv_local.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/random.h"
#include "dist/communicator.h"
#include "dist/exchange.h"
#include "tests/support/forked_ranks.h"

namespace qkv {
namespace {

using testing::failures_on_ranks;

constexpr int64_t kShards = 11, kRanges[] = {5 * kSliceBlock + 17, 3, 2 * kSliceBlock}, kGap = 5;

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
};

bool sums_like_one_process(Communicator& communicator) {
  const Gradients gradients;
  std::vector<std::vector<Slice>> slices;
  for (int rank = 0; rank < communicator.size(); rank++)
    slices.push_back(slices_of(kRanges, rank, communicator.size()));
  GradientExchange exchange(communicator, kShards, slices, gradients.begins);
  bool same = true;
  for (int step = 0; step < 5; step++) {
    std::vector<std::vector<float>> nodes;
    std::vector<std::span<float>> sums;
    for (const TreeNode& node : exchange.nodes()) nodes.push_back(gradients.sum(node, step));
    for (auto& node : nodes) sums.emplace_back(node);
    exchange.sum(sums);
    const std::vector<float> expected = gradients.sum({0, kShards}, step);
    for (const Slice& slice : slices[to_size(communicator.rank())]) {
      const auto first = gradients.begins[to_size(slice.range)] + slice.first;
      same &= std::equal(&expected[to_size(first)], expected.data() + first + slice.size, &sums.back()[to_size(first)]);
    }
  }
  communicator.leave();
  return same;
}

TEST(GradientExchange, SumsLikeOneProcess) {
  for (const int ranks : {2, 3, 7, 11}) EXPECT_EQ(failures_on_ranks(ranks, sums_like_one_process), 0) << ranks;
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
    std::array<std::byte, 3> met;
    share_all(c, {{std::span(met).subspan(0, 1)}, {std::span(met).subspan(1, 1)}, {std::span(met).subspan(2, 1)}});
    if (c.rank() == 2) return c.fail("text.en: cannot be opened");
    const auto wait_for_rank_2 = [&] {
      std::byte never;
      Communicator::Group group(c);
      group.receive({&never, 1}, 2);
      group.wait();
    };
    try {
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
