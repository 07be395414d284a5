// From a stream of lines to a stream of translated lines: lines are read into a window, their parts sorted by length
// and cut into batches, batches translated by workers, lines written in the order they came.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "decode/forced.h"
#include "qkv/translator.h"

namespace qkv {

// What is translated at once: a line, or a part of one that is too long.
struct Part {
  int64_t line = 0;
  std::string text;
  std::vector<int32_t> source, prefix;
  std::vector<Decoded> found;      // best first
  std::vector<Forced> attentions;  // of `found`, where they were asked for
};

struct Line {
  int64_t number = 0;  // from 0
  SourceLine source;
  std::vector<Part> parts;   // none for an empty line
  std::exception_ptr error;  // thrown when it is the line's turn to be written
};

struct PipelineSteps {
  // Fills a line but for what is found; see LineSource. An error goes into the line, and ends the stream there.
  std::function<Next(Line&, bool wait)> read;
  // Translates a batch. Called from several threads at a time.
  std::function<void(std::span<Part* const>, Arena&)> work;
  std::function<void(Line&&)> write;
  std::function<void(int64_t)> progress;  // lines written since the last call, perhaps 0; may be empty
};

struct PipelineLimits {
  int64_t batch_tokens = 0;  // source tokens of a batch
  int64_t window = 0;        // lines
};

// Runs until read says that there are no more lines. A worker for each arena; a single one is the calling thread. All
// threads of this thread are shared among the workers. Throws what the steps throw.
void run_pipeline(const PipelineSteps& steps, const PipelineLimits& limits, const std::vector<Arena*>& arenas);

}  // namespace qkv
