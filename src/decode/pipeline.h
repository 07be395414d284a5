// Translates a stream of lines. Lines are read into a window, their parts sorted by length and grouped into batches,
// batches translated by workers, and lines written in the order of the input.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/arena.h"
#include "decode/search/forced.h"
#include "decode/terms/glossary.h"
#include "decode/terms/kept_parts.h"
#include "io/runs/translation_config.h"
#include "qkv/translator.h"

namespace qkv {

// ---- Worker threads with one job queue. Each thread has its own arena.

// Returns the number of workers for an option: 0 chooses one per thread, at most 16.
size_t worker_count(int64_t workers);

// A pool of at most one thread per arena. They share the threads of the thread that creates the pool: a job gets an
// equal part for each job that runs or waits. As long as there is a single arena, or only one job at a time, there is
// no thread: jobs run on the thread that calls wait, which also throws the exceptions of jobs.
class Workers {
 public:
  using Job = std::function<void(Arena&)>;

  explicit Workers(const std::vector<Arena*>& arenas);
  ~Workers();  // waits for running jobs and drops the others
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void submit(Job job);
  size_t waiting() const;  // returns the number of jobs that have not begun
  size_t open() const;     // returns the number of jobs whose end wait has not reported

  // Waits up to 0.1 seconds for a job to end. Returns whether one has ended since the last call. Throws the first
  // exception of a job since the last call; failed jobs count as ended, and the others continue.
  bool wait();

 private:
  bool start_thread();
  void run_jobs(Arena& arena);
  int share() const;
  void run_first_job(Arena& arena, std::unique_lock<std::mutex>& lock);

  const std::vector<Arena*> arenas_;
  const int all_threads_;
  mutable std::mutex mutex_;
  std::condition_variable submitted_, ended_;
  std::deque<Job> jobs_;
  size_t open_ = 0, finished_ = 0, running_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// ---- Lines

// A unit of translation: a line, a sentence of a line, or a part of one that is too long.
struct LinePart {
  int64_t line = 0;
  std::string text;
  SentenceEdges edges;
  std::vector<int32_t> source, prefix;
  std::vector<Decoded> found;       // best first
  std::vector<Forced> attentions;   // for each of `found`, if requested
  size_t sentence = 0;              // of the line, from 0
  size_t step = 0;                  // of the line, from 0: the model of a chain that translates it
  int64_t inline_tokens = 0;        // of the source: translations of terms (inline_terms.h)
  std::string space = {};           // between the part before it and this one
  bool is_last = true;              // of its line
  bool is_stopped = false;          // on_token has ended its line here
  std::vector<KeptPart> kept = {};  // taken out of the text
  std::shared_ptr<const RequiredTerms> terms = nullptr;
  std::vector<std::string> term_names = {};    // of the required terms, in the source
  std::vector<std::string> not_required = {};  // terms of the glossary that the search cannot require
  std::shared_ptr<const Glossary> glossary = nullptr;
  std::vector<LinePart> clauses = {};  // translated in its place, because its own translation is too short

  // The number of tokens of the text, without those around it and without translations of terms.
  int64_t source_tokens() const {
    return std::max<int64_t>(0, std::ssize(source) - std::ssize(edges.before) - std::ssize(edges.after) -
                                    edges.prefix_tokens - inline_tokens);
  }
};

// A line of the stream and its results.
struct Line {
  int64_t number = 0;  // from 0; negative: not one of several, and not named in errors
  SourceLine source;
  std::vector<LinePart> parts;                      // none for an empty line
  std::exception_ptr error;                         // rethrown when the line would be written
  std::vector<SentencePair> sentences = {};         // without translations, but for those that are kept as a whole
  std::string space_before = {}, space_after = {};  // before the first part and after the last one
  std::vector<std::string> notes = {};              // Translation::notes

  // Drops the parts after the first `count`.
  void stop_after(size_t count) {
    parts.resize(count);
    parts.back().is_last = true;
    sentences.resize(parts.back().sentence + 1);
  }
};

// The functions that a pipeline calls.
struct PipelineSteps {
  // Reads a line and its parts, without results; see LineSource. An error is stored in the line and ends the stream.
  std::function<Next(Line&, bool wait)> read;
  // Translates a batch, whose parts have the same step. Called concurrently from several threads.
  std::function<void(std::span<LinePart* const>, Arena&)> work;
  std::function<void(Line&&)> write;
  // Called when the parts of a line are translated. Returns whether it has replaced them by those of the line's next
  // step, which are then translated, too. An error is stored in the line. Optional; not with PipelineLimits::in_order.
  std::function<bool(Line&)> next = {};
  // Called with the number of lines written since the last call, possibly 0. Optional.
  std::function<void(int64_t)> progress = {};
};

struct PipelineLimits {
  int64_t batch_tokens = 0;  // maximum source tokens per batch
  int64_t window = 0;        // maximum lines per window
  bool in_order = false;     // a part waits for the end of the one before it in its line
};

// Runs until `read` returns the end of the stream. There is one worker per arena; a single worker is the calling
// thread. The workers share the threads of the calling thread equally. Rethrows the exceptions of the steps.
void run_pipeline(const PipelineSteps& steps, const PipelineLimits& limits, const std::vector<Arena*>& arenas);

}  // namespace qkv
