#include "decode/pipeline.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/batches.h"

namespace qkv {

// ---- Workers

size_t worker_count(int64_t workers) {
  constexpr int kMost = 16;  // each takes memory for the keys and values of its batch
  return to_size(workers > 0 ? workers : std::min(threads(), kMost));
}

Workers::Workers(const std::vector<Arena*>& arenas) : arenas_(arenas), all_threads_(threads()) {}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    jobs_.clear();
  }
  submitted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    open_++;
    const size_t wanted = open_ > 1 ? std::min(open_, arenas_.size()) : 0;
    while (threads_.size() < wanted && start_thread()) {
    }
  }
  submitted_.notify_one();
}

// If no thread can be started, the others do the work, or the thread that waits.
bool Workers::start_thread() {
  if (arenas_.size() == 1) return false;
  Arena& arena = *arenas_[threads_.size()];
  try {
    threads_.emplace_back([this, &arena] { run_jobs(arena); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

// Returns the number of threads for the first job of the queue.
int Workers::share() const {
  const size_t jobs = std::min(running_ + jobs_.size(), arenas_.size());
  return std::max(1, all_threads_ / static_cast<int>(jobs));
}

size_t Workers::waiting() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

size_t Workers::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

bool Workers::wait() {
  std::unique_lock lock(mutex_);
  if (threads_.empty() && !jobs_.empty()) run_first_job(*arenas_.front(), lock);
  ended_.wait_for(lock, std::chrono::milliseconds(100), [&] { return finished_ > 0; });
  open_ -= finished_;
  const bool ended = std::exchange(finished_, 0) > 0;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return ended;
}

void Workers::run_jobs(Arena& arena) {
  std::unique_lock lock(mutex_);
  while (true) {
    submitted_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    set_threads(share());
    running_++;
    run_first_job(arena, lock);
    running_--;
    ended_.notify_one();
  }
}

// Runs the first job of the queue. Releases the lock while the job runs.
void Workers::run_first_job(Arena& arena, std::unique_lock<std::mutex>& lock) {
  const Job job = std::move(jobs_.front());
  jobs_.pop_front();
  lock.unlock();
  std::exception_ptr error;
  try {
    job(arena);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (!error_) error_ = std::move(error);
  finished_++;
}

// ---- Lines

namespace {

constexpr int64_t kFirstWindow = 32;       // lines; small, so that the first results come early
constexpr int64_t kWindows = 3;            // maximum held while a slow batch delays writing
constexpr int64_t kBatchesOfAWindow = 64;  // maximum, however long the lines are

class PipelineRun {
 public:
  PipelineRun(const PipelineSteps& steps, const PipelineLimits& limits, const std::vector<Arena*>& arenas)
      : steps_(steps),
        limits_(limits),
        window_(std::min(kFirstWindow, limits.window)),
        worker_count_(arenas.size()),
        workers_(arenas) {}

  void run() {
    while (true) {
      const bool none_ready = read();
      if (new_lines_ > 0 && (ended_ || none_ready || is_full())) submit();
      if (workers_.open() > 0) workers_.wait();
      continue_lines();
      write();
      if (ended_ && lines_.empty()) return;
    }
  }

 private:
  // A line in progress.
  struct Open {
    Line line;
    size_t submitted = 0;     // parts
    size_t unfinished = 0;    // of the submitted parts, which workers count down
    bool is_running = false;  // has submitted parts whose end continue_lines() has not seen
    bool has_next = false;    // when its parts are translated, there may be a next step
  };
  using Parts = std::vector<std::pair<Open*, LinePart*>>;

  // Appends the parts of a line that may be translated now.
  void take_parts(Open& open, Parts& parts) const {
    std::vector<LinePart>& all = open.line.parts;
    const size_t end = limits_.in_order ? std::min(open.submitted + 1, all.size()) : all.size();
    open.unfinished = end - open.submitted;
    open.is_running = end > open.submitted;
    for (; open.submitted < end; open.submitted++) parts.emplace_back(&open, &all[open.submitted]);
  }

  bool is_full() const { return new_lines_ >= window_ || new_tokens_ >= kBatchesOfAWindow * limits_.batch_tokens; }

  // Reads ahead while workers may run out of batches. Returns whether the source has no line ready.
  bool read() {
    const auto room = [&] { return std::ssize(lines_) < kWindows * limits_.window; };
    while (!ended_ && !is_full() && room() && workers_.waiting() < worker_count_) {
      auto next = std::make_unique<Open>();
      next->line.number = count_;
      const Next what = steps_.read(next->line, lines_.empty());
      if (what == Next::later) return true;
      ended_ = what == Next::end || next->line.error;
      if (what == Next::end) return false;
      count_++;
      new_lines_++;
      next->has_next = steps_.next != nullptr && !next->line.error;
      for (const LinePart& part : next->line.parts) new_tokens_ += std::ssize(part.source);
      lines_.push_back(std::move(next));
    }
    return false;
  }

  // Submits the lines read since the last call.
  void submit() {
    Parts parts;
    for (size_t i = lines_.size() - to_size(new_lines_); i < lines_.size(); i++) {
      take_parts(*lines_[i], parts);
      if (lines_[i]->line.parts.empty()) take_next_step(*lines_[i]);
    }
    submit(parts);
    new_lines_ = new_tokens_ = 0;
    window_ = std::min(4 * window_, limits_.window);
  }

  // Submits what follows the lines whose parts have ended since the last call.
  void continue_lines() {
    std::vector<Open*> lines;
    {
      const std::lock_guard lock(ended_mutex_);
      lines.swap(ended_lines_);
    }
    for (Open* open : lines) open->is_running = false;
    if (limits_.in_order) submit_next_parts(lines);
    if (steps_.next) submit_next_steps(lines);
  }

  // Submits the next part of each line, unless it was stopped or has failed.
  void submit_next_parts(const std::vector<Open*>& lines) {
    Parts parts;
    for (Open* open : lines) {
      if (open->line.parts[open->submitted - 1].is_stopped) open->line.stop_after(open->submitted);
      if (!open->line.error) take_parts(*open, parts);
    }
    submit(parts);
  }

  // Submits the next step of lines: enough of them for a batch, unless workers may run out.
  void submit_next_steps(const std::vector<Open*>& lines) {
    for (Open* open : lines) take_next_step(*open);
    if (next_tokens_ < limits_.batch_tokens && workers_.waiting() > 0) return;
    for (const Parts& parts : next_steps_) submit(parts);
    next_steps_.clear();
    next_tokens_ = 0;
  }

  // Takes the next step of a line whose parts are translated, if it has one.
  void take_next_step(Open& open) {
    while (open.has_next && !open.is_running) {
      open.has_next = !open.line.error && steps_.next(open.line);
      if (!open.has_next || open.line.parts.empty()) continue;
      const size_t step = open.line.parts.front().step;
      for (const LinePart& part : open.line.parts) next_tokens_ += std::ssize(part.source);
      next_steps_.resize(std::max(next_steps_.size(), step + 1));
      open.submitted = 0;
      take_parts(open, next_steps_[step]);
    }
  }

  // Submits parts in batches of similar length.
  void submit(const Parts& parts) {
    std::vector<int64_t> lengths;
    for (const auto& [line, part] : parts) lengths.push_back(std::ssize(part->source));
    const Batches batches = cut_by_length(lengths, limits_.batch_tokens);
    for (size_t b = 0; b < batches.size(); b++) {
      Parts batch;
      for (const size_t i : batches[b]) batch.push_back(parts[i]);
      workers_.submit([this, batch = std::move(batch)](Arena& arena) { work(batch, arena); });
    }
  }

  void work(const Parts& batch, Arena& arena) {
    std::vector<LinePart*> parts;
    for (const auto& [line, part] : batch) parts.push_back(part);
    std::exception_ptr error;
    try {
      steps_.work(parts, arena);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(ended_mutex_);  // two batches may hold parts of one line
    for (const auto& [line, part] : batch) {
      if (error) line->line.error = error;
      if (--line->unfinished == 0) ended_lines_.push_back(line);
    }
  }

  // Writes the finished lines at the front.
  void write() {
    int64_t written = 0;
    const size_t submitted = lines_.size() - to_size(new_lines_);
    const auto is_done = [](const Open& open) { return !open.is_running && !open.has_next; };
    for (size_t i = 0; i < submitted && is_done(*lines_.front()); i++, written++) {
      if (lines_.front()->line.error) std::rethrow_exception(lines_.front()->line.error);
      steps_.write(std::move(lines_.front()->line));
      lines_.pop_front();
    }
    if (steps_.progress) steps_.progress(written);
  }

  const PipelineSteps& steps_;
  const PipelineLimits limits_;
  int64_t window_, new_lines_ = 0, new_tokens_ = 0, next_tokens_ = 0, count_ = 0;
  bool ended_ = false;
  std::deque<std::unique_ptr<Open>> lines_;  // lines not yet written; the last new_lines_ are not yet submitted
  std::vector<Parts> next_steps_;            // of steps of lines, by step, that are not yet submitted
  std::mutex ended_mutex_;
  std::vector<Open*> ended_lines_;  // whose submitted parts have ended, for continue_lines()
  const size_t worker_count_;
  Workers workers_;  // destroyed first, because its jobs use the lines
};

}  // namespace

void run_pipeline(const PipelineSteps& steps, const PipelineLimits& limits, const std::vector<Arena*>& arenas) {
  PipelineRun(steps, limits, arenas).run();
}

}  // namespace qkv
