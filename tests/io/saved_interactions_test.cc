// The log in a run directory: it survives a round trip, and inconsistent files are rejected.
#include "io/runs/saved_interactions.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/weights/safetensors.h"
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

TEST(SavedInteractions, SurviveARoundTrip) {
  const TempDir directory;
  const RunDirectory run(directory.path());
  Interactions data = sample_log();
  for (const bool timed : {true, false}) {
    if (!timed) data.times.clear();
    write_log(run, {data, kSum});
    const SavedInteractions saved = read_log(run);
    expect_same(saved.data, data);
    EXPECT_EQ(saved.sha256, kSum);
  }
}

// Returns the error of reading a log after `change` has broken it or its files.
template <class Change>
std::string error_after(Change&& change) {
  const TempDir directory;
  const RunDirectory run(directory.path());
  Interactions data = sample_log();
  if constexpr (std::is_invocable_v<Change, Interactions&>) {
    change(data);
    write_log(run, {data, kSum});
  } else {
    write_log(run, {data, kSum});
    change(run);
  }
  return error_of([&] { read_log(run); });
}

TEST(SavedInteractions, RejectsInconsistentNumbers) {
  const auto error = [](void (*change)(Interactions&)) { return error_after(change); };
  expect_contains(error([](Interactions& d) { d.offsets[1] = 4; }),
                  "tensor offsets must increase from 0 to 5, the number of events");
  expect_contains(error([](Interactions& d) { d.offsets = {0, -1, 3, 5}; }), "(is 4 numbers from 0 to 5)");
  expect_contains(error([](Interactions& d) { d.offsets[0] = 1; }), "(is 4 numbers from 1 to 5)");
  expect_contains(error([](Interactions& d) { d.offsets.back() = 6; }), "(is 4 numbers from 0 to 6)");
  expect_contains(error([](Interactions& d) { d.offsets.clear(); }), "(is empty)");
  expect_contains(error([](Interactions& d) { d.events[2] = 4; }), "items.json (is 4)");
  expect_contains(error([](Interactions& d) { d.events[2] = -1; }), "items.json (is -1)");
  expect_contains(error([](Interactions& d) { d.times.pop_back(); }),
                  "tensor times must have 5 elements, one per event (has 4)");
  expect_contains(error([](Interactions& d) { d.times[0] = 8; }), "tensor times decreases within user 0");
  expect_contains(error([](Interactions& d) { d.users.pop_back(); }), "users.json: must have 3 users, as in ");
  expect_contains(error([](Interactions& d) { d.users[2] = "ann"; }), "users.json: users 0 and 2 are both \"ann\"");
  expect_contains(error([](Interactions& d) { d.items[1].clear(); }), "items.json: item 1 has an empty name");
}

TEST(SavedInteractions, RejectsOtherFiles) {
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
                  "metadata must be format qkv interactions 1 and a sha256");
  const auto with = [](std::vector<NamedTensor> tensors) {
    return error_after([tensors](const RunDirectory& run) {
      write_safetensors(run.interactions(), tensors, {{"format", "qkv interactions 1"}, {"sha256", kSum}});
    });
  };
  static const std::vector<int64_t> numbers = {0, 0, 0, 0};
  const auto bytes = std::as_bytes(std::span(numbers));
  const NamedTensor offsets = {"offsets", {DType::i64, {4}, bytes}};
  expect_contains(with({offsets}), "must have the tensors events, offsets and optionally times (has 1 tensors)");
  expect_contains(with({offsets, {"other", {DType::i64, {4}, bytes}}}),
                  "tensor events must be I32 with one dimension (is missing)");
  expect_contains(with({offsets, {"events", {DType::i32, {2, 4}, bytes}}}),
                  "tensor events must be I32 with one dimension (is I32 [2, 4])");
  expect_contains(with({offsets, {"events", {DType::i64, {4}, bytes}}}),
                  "tensor events must be I32 with one dimension (is I64 [4])");
}

}  // namespace
}  // namespace qkv
