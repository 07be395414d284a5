// The stream of lines: order, windows, errors in line order, and the number of lines held at once.
#include "decode/pipeline.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <mutex>
#include <numeric>

#include "core/fail.h"
#include "core/random.h"
#include "core/to_size.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

// A stream of lines of numbers. The "translation" of a part is its reversed source.
class Lines {
 public:
  explicit Lines(int64_t lines) : lines_(lines) {}

  PipelineSteps steps() {
    PipelineSteps steps;
    steps.read = [this](Line& line, bool wait) { return read(line, wait); };
    steps.work = [this](std::span<LinePart* const> parts, Arena&) { work(parts); };
    steps.write = [this](Line&& line) {
      for (const LinePart& part : line.parts) EXPECT_EQ(part.found.front().ids.front(), part.source.back());
      written.push_back(line.number);
      held_--;
    };
    return steps;
  }
  void run(size_t workers, int64_t window = 64, int64_t batch_tokens = 20) {
    std::vector<std::unique_ptr<Arena>> arenas;
    std::vector<Arena*> pointers;
    for (size_t i = 0; i < workers; i++) {
      arenas.push_back(std::make_unique<Arena>(1 << 20));
      pointers.push_back(arenas.back().get());
    }
    run_pipeline(steps(), {batch_tokens, window}, pointers);
  }
  void expect_all_written() const {
    std::vector<int64_t> all(to_size(lines_));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(written, all);
  }

  std::vector<int64_t> written, batches;
  std::function<bool(int64_t)> later = [](int64_t) { return false; };  // whether line n is not ready yet
  std::function<void(const LinePart&)> trouble = [](const LinePart&) {};
  int64_t broken = -1, most_held = 0, written_before_last_read = 0;

 private:
  Next read(Line& line, bool wait) {
    if (!wait && later(count_)) return Next::later;
    written_before_last_read = std::ssize(written);
    if (count_ == lines_) return Next::end;
    most_held = std::max(most_held, ++held_);
    if (count_ == broken) line.error = std::make_exception_ptr(Error("broken line"));
    Random random(5, Stream::test, static_cast<uint64_t>(count_++));
    for (uint64_t parts = random.below(3); parts > 0; parts--) {  // some lines have none
      LinePart part{line.number, "", {}, {}, {}, {}, {}};
      for (uint64_t n = 1 + random.below(9); n > 0; n--) part.source.push_back(static_cast<int32_t>(random.below(100)));
      line.parts.push_back(std::move(part));
    }
    return Next::line;
  }
  void work(std::span<LinePart* const> parts) {
    int64_t tokens = 0;
    for (LinePart* part : parts) {
      trouble(*part);
      tokens += std::ssize(part->source);
      part->found.push_back({.ids = {part->source.rbegin(), part->source.rend()}});
    }
    const std::lock_guard lock(mutex_);
    batches.push_back(tokens);
  }

  const int64_t lines_;
  int64_t count_ = 0, held_ = 0;
  std::mutex mutex_;
};

TEST(Pipeline, WritesEveryLineInOrder) {
  for (const size_t workers : {1, 2, 5})
    for (const int64_t window : {1, 7, 500}) {
      Lines stream(1000);
      stream.run(workers, window);
      stream.expect_all_written();
      for (const int64_t tokens : stream.batches) EXPECT_LE(tokens, 20);
    }
}

TEST(Pipeline, EmptyInputWritesNothing) {
  for (const int64_t lines : {0, 1}) {
    Lines stream(lines);
    stream.run(2);
    stream.expect_all_written();
  }
}

TEST(Pipeline, HoldsAtMostAFewWindows) {
  for (const size_t workers : {1, 3}) {
    Lines stream(20000);
    stream.run(workers, 100);
    stream.expect_all_written();
    EXPECT_LE(stream.most_held, 300) << workers;
  }
}

TEST(Pipeline, HoldsFewerLinesIfTheyAreLong) {
  Lines stream(20000);
  stream.run(1, 10000, 1);  // one batch per part, 64 of them in a window
  stream.expect_all_written();
  EXPECT_LE(stream.most_held, 200);
}

TEST(Pipeline, TranslatesAvailableLinesBeforeWaiting) {
  Lines stream(50);
  stream.later = [&](int64_t n) { return n % 10 == 0; };  // ready only when the pipeline waits for it
  stream.run(1);
  stream.expect_all_written();
  EXPECT_EQ(stream.written_before_last_read, 50);
}

TEST(Pipeline, ThrowsReadErrorsInLineOrder) {
  for (const size_t workers : {1, 3}) {
    Lines stream(1000);
    stream.broken = 700;
    EXPECT_EQ(error_of([&] { stream.run(workers); }), "broken line");
    EXPECT_EQ(stream.written.size(), 700u);
  }
}

TEST(Pipeline, RethrowsBatchErrors) {
  for (const size_t workers : {1, 3}) {
    Lines stream(1000);
    stream.trouble = [](const LinePart& part) {
      if (part.line >= 490 && part.line < 500) fail("trouble");  // some of them have a part
    };
    EXPECT_EQ(error_of([&] { stream.run(workers); }), "trouble");
    EXPECT_LE(stream.written.size(), 500u);
    for (size_t i = 0; i < stream.written.size(); i++) EXPECT_EQ(stream.written[i], static_cast<int64_t>(i));
  }
}

TEST(Pipeline, RethrowsWriteErrors) {
  Lines stream(1000);
  PipelineSteps steps = stream.steps();
  int64_t count = 0;
  steps.write = [&](Line&&) {
    if (++count == 100) fail("closed");
  };
  Arena a(1 << 20), b(1 << 20);
  EXPECT_EQ(error_of([&] { run_pipeline(steps, {20, 64}, {&a, &b}); }), "closed");
}

// Each line has as many steps as its number modulo 4, and another number of parts in each.
TEST(Pipeline, LinesHaveFurtherSteps) {
  for (const size_t workers : {1, 3})
    for (const int64_t window : {1, 7, 500}) {
      Lines stream(1000);
      PipelineSteps steps = stream.steps();
      std::map<int64_t, size_t> done;
      steps.next = [&](Line& line) {
        for (const LinePart& part : line.parts) EXPECT_EQ(part.found.size(), 1u);
        const size_t step = ++done[line.number];
        if (step > to_size(line.number % 4)) return false;
        line.parts.clear();
        for (size_t p = 0; p < (to_size(line.number) + step) % 3; p++)
          line.parts.push_back({line.number, "", {}, std::vector<int32_t>(1 + p + step), {}, {}, {}, 0, step});
        return true;
      };
      const auto work = steps.work;
      steps.work = [&](std::span<LinePart* const> parts, Arena& arena) {
        for (const LinePart* part : parts) EXPECT_EQ(part->step, parts.front()->step);
        work(parts, arena);
      };
      std::deque<Arena> arenas;
      std::vector<Arena*> pointers;
      for (size_t i = 0; i < workers; i++) arenas.emplace_back(1 << 20);
      for (Arena& arena : arenas) pointers.push_back(&arena);
      run_pipeline(steps, {20, window}, pointers);
      stream.expect_all_written();
      EXPECT_LE(stream.most_held, 3 * window);
      for (int64_t n = 0; n < 1000; n++) EXPECT_EQ(done[n], to_size(n % 4) + 1);
      for (const int64_t tokens : stream.batches) EXPECT_LE(tokens, 20);
    }
}

TEST(Pipeline, ThrowsErrorsOfFurtherStepsInLineOrder) {
  Lines stream(1000);
  PipelineSteps steps = stream.steps();
  steps.next = [&](Line& line) {
    if (line.number == 600) line.error = std::make_exception_ptr(Error("broken step"));
    return false;
  };
  Arena a(1 << 20), b(1 << 20);
  EXPECT_EQ(error_of([&] { run_pipeline(steps, {20, 64}, {&a, &b}); }), "broken step");
  EXPECT_EQ(stream.written.size(), 600u);
}

TEST(Pipeline, ReportsEveryWrittenLine) {
  Lines stream(300);
  PipelineSteps steps = stream.steps();
  int64_t reported = 0;
  steps.progress = [&](int64_t n) { reported += n; };
  Arena a(1 << 20);
  run_pipeline(steps, {20, 64}, {&a});
  EXPECT_EQ(reported, 300);
}

}  // namespace
}  // namespace qkv
