// The log in a run directory: what is saved comes back, and no lie in the files passes.
#include "io/saved_interactions.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::TempDir;

const std::string kSum(64, 'a');

Interactions sample_log() {
  Interactions data;
  data.users = {"ann", "b\"\n", "é"};
  data.items = {"Heat (1995)", " ", "3", "4"};
  data.offsets = {0, 3, 3, 5};
  data.events = {0, 3, 0, 2, 1};
  data.times = {-5, 7, 7, 1, 2};
  return data;
}

void expect_same(const Interactions& found, const Interactions& wanted) {
  EXPECT_EQ(found.users, wanted.users);
  EXPECT_EQ(found.items, wanted.items);
  EXPECT_EQ(found.offsets, wanted.offsets);
  EXPECT_EQ(found.events, wanted.events);
  EXPECT_EQ(found.times, wanted.times);
}

TEST(SavedInteractions, ComeBackAsTheyWere) {
  const TempDir directory;
  const RunDirectory run(directory.path());
  Interactions data = sample_log();
  for (const bool timed : {true, false}) {
    if (!timed) data.times.clear();
    save_interactions(run, data, kSum);
    const SavedInteractions saved = load_interactions(run);
    expect_same(saved.data, data);
    EXPECT_EQ(saved.sha256, kSum);
  }
}

// The error where `change` has made the log, or its files, into what they must not be.
template <class Change>
std::string error_after(Change&& change) {
  const TempDir directory;
  const RunDirectory run(directory.path());
  Interactions data = sample_log();
  if constexpr (std::is_invocable_v<Change, Interactions&>) {
    change(data);
    save_interactions(run, data, kSum);
  } else {
    save_interactions(run, data, kSum);
    change(run);
  }
  return error_of([&] { load_interactions(run); });
}

TEST(SavedInteractions, NumbersThatDoNotFitAreRefused) {
  const auto error = [](void (*change)(Interactions&)) { return error_after(change); };
  expect_contains(error([](Interactions& d) { d.offsets[1] = 4; }), "wanted them to rise from 0 to the 5 events");
  expect_contains(error([](Interactions& d) { d.offsets = {0, -1, 3, 5}; }), "tensor offsets: found 4 from 0 to 5");
  expect_contains(error([](Interactions& d) { d.offsets[0] = 1; }), "tensor offsets: found 4 from 1 to 5");
  expect_contains(error([](Interactions& d) { d.offsets.back() = 6; }), "tensor offsets: found 4 from 0 to 6");
  expect_contains(error([](Interactions& d) { d.offsets.clear(); }), "tensor offsets: found none");
  expect_contains(error([](Interactions& d) { d.events[2] = 4; }), "found item 4, wanted one of the 4 in ");
  expect_contains(error([](Interactions& d) { d.events[2] = -1; }), "found item -1, wanted one of the 4 in ");
  expect_contains(error([](Interactions& d) { d.times.pop_back(); }), "found 4 times, wanted one for each of 5 events");
  expect_contains(error([](Interactions& d) { d.times[0] = 8; }), "tensor times: those of user 0 fall");
  expect_contains(error([](Interactions& d) { d.users.pop_back(); }), "users.json: found 2 users, wanted 3 as in ");
  expect_contains(error([](Interactions& d) { d.users[2] = "ann"; }), "users.json: users 0 and 2 are both \"ann\"");
  expect_contains(error([](Interactions& d) { d.items[1].clear(); }), "items.json: item 1 has an empty name");
}

TEST(SavedInteractions, OtherFilesAreRefused) {
  const auto error = [](void (*change)(const RunDirectory&)) { return error_after(change); };
  expect_contains(error([](const RunDirectory& run) { testing::spill(run.items(), "{}"); }),
                  "items.json: not a JSON array of strings");
  expect_contains(error([](const RunDirectory& run) { testing::spill(run.users(), "[\"a\", 1]"); }),
                  "users.json: value 1 is not a string");
  expect_contains(error([](const RunDirectory& run) { std::filesystem::remove(run.users()); }),
                  "users.json: cannot be opened");
  expect_contains(error([](const RunDirectory& run) { testing::spill(run.interactions(), "xxxxxxxxx"); }),
                  "interactions.safetensors: not a safetensors file");
  expect_contains(error([](const RunDirectory& run) {
                    write_safetensors(run.interactions(), {}, {{"format", "x"}});
                  }),
                  "found other metadata than format qkv interactions 1 and a sha256");
  const auto with = [](std::vector<NamedTensor> tensors) {
    return error_after([tensors](const RunDirectory& run) {
      write_safetensors(run.interactions(), tensors, {{"format", "qkv interactions 1"}, {"sha256", kSum}});
    });
  };
  static const std::vector<int64_t> numbers = {0, 0, 0, 0};
  const auto bytes = std::as_bytes(std::span(numbers));
  const NamedTensor offsets = {"offsets", {DType::i64, {4}, bytes}};
  expect_contains(with({offsets}), "found 1 tensors, wanted events, offsets and, where there are any, times");
  expect_contains(with({offsets, {"other", {DType::i64, {4}, bytes}}}), "tensor events: found none, wanted I32 of one");
  expect_contains(with({offsets, {"events", {DType::i32, {2, 4}, bytes}}}), "tensor events: found I32 [2, 4], wanted");
  expect_contains(with({offsets, {"events", {DType::i64, {4}, bytes}}}), "tensor events: found I64 [4], wanted I32");
}

}  // namespace
}  // namespace qkv
