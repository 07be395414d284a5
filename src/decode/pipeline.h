// Translates a stream of lines. Lines are read into a window, their parts sorted by length and grouped into batches,
// batches translated by workers, and lines written in the order of the input.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "decode/search/forced.h"
#include "io/runs/translation_config.h"
#include "qkv/translator.h"

namespace qkv {

// A unit of translation: a line, or a part of a line that is too long.
struct LinePart {
  int64_t line = 0;
  std::string text;
  SentenceEdges edges;
  std::vector<int32_t> source, prefix;
  std::vector<Decoded> found;      // best first
  std::vector<Forced> attentions;  // for each of `found`, if requested
};

// A line of the stream and its results.
struct Line {
  int64_t number = 0;  // from 0; negative: not one of several, and not named in errors
  SourceLine source;
  std::vector<LinePart> parts;  // none for an empty line
  std::exception_ptr error;     // rethrown when the line would be written
};

// The functions that a pipeline calls.
struct PipelineSteps {
  // Reads a line and its parts, without results; see LineSource. An error is stored in the line and ends the stream.
  std::function<Next(Line&, bool wait)> read;
  // Translates a batch. Called concurrently from several threads.
  std::function<void(std::span<LinePart* const>, Arena&)> work;
  std::function<void(Line&&)> write;
  std::function<void(int64_t)>
      progress;  // called with the number of lines written since the last call, possibly 0; optional
};

struct PipelineLimits {
  int64_t batch_tokens = 0;  // maximum source tokens per batch
  int64_t window = 0;        // maximum lines per window
};

// Runs until `read` returns the end of the stream. There is one worker per arena; a single worker is the calling
// thread. The workers share the threads of the calling thread equally. Rethrows the exceptions of the steps.
void run_pipeline(const PipelineSteps& steps, const PipelineLimits& limits, const std::vector<Arena*>& arenas);

}  // namespace qkv
