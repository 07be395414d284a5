// Batches of a text on disk, epoch after epoch.
//
// An epoch takes the text's chunks in an order shuffled by (seed, epoch) and cuts this order into windows. The pairs of
// a window are shuffled by (seed, epoch, window) and cut into batches, so a text of one window is shuffled as a whole.
// While the batches of one window are handed out the next window is read and cut into ids, a share with each batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batcher.h"
#include "data/parallel_data.h"
#include "text/corpus.h"
#include "text/tokenizer.h"

namespace qkv {

struct Skipped {
  int64_t empty = 0, too_long = 0;  // pairs

  bool operator==(const Skipped&) const = default;
};

// The next batch, from 0: number `batch` of the window, number `window` of the epoch.
struct StreamPosition {
  int64_t epoch = 0, window = 0, batch = 0;
  Skipped skipped = {};  // in the windows of this epoch that are done

  bool operator==(const StreamPosition&) const = default;
};

struct StreamOptions {
  int64_t max_length = 256;  // a pair with more tokens, or more than batch_tokens, on a side is skipped as too long
  int64_t batch_tokens = 4096;
  uint64_t seed = 1;
  int64_t window_chunks = 64;  // at most
};

// Its batches depend on nothing but text, tokenizers, options and position. Two windows are in memory. For one thread,
// which the others help. All methods throw Error where the text is no longer what it was.
class BatchStream {
 public:
  // The corpus outlives the stream and is not empty. seek comes before all else.
  BatchStream(const ParallelCorpus& corpus, const Tokenizer& source, const Tokenizer& target,
              const StreamOptions& options);

  // False if there is no such batch. Throws Error if the text has no pair that is not skipped.
  bool seek(const StreamPosition& position);
  const StreamPosition& position() const { return position_; }

  // Fills `batch` with the next one: source = x </s>, target = <s> y, labels = y </s>.
  void next(Batch& batch);

  int64_t windows() const;                      // of an epoch
  int64_t longest() const { return longest_; }  // tokens on a side of a pair that is not skipped, at most
  std::string fingerprint() const { return corpus_.fingerprint(); }
  std::string summary() const;        // the text and the present window in one line
  std::string epoch_summary() const;  // the same for the epoch before the present one

 private:
  struct Window {
    std::vector<int64_t> chunks;  // in the order of the text
    size_t ready = 0;             // chunks whose pairs are in data
    std::shared_ptr<ParallelData> data;
  };

  Window open(int64_t epoch, int64_t window) const;
  void prepare(Window& window, size_t chunks) const;
  void enter();
  void leave();
  Skipped skipped() const;
  Batcher batcher() const { return Batcher(*present_.data, options_.batch_tokens, options_.seed); }

  const ParallelCorpus& corpus_;
  Tokenizer source_, target_;
  StreamOptions options_;
  int64_t longest_;
  StreamPosition position_;
  Skipped last_epoch_;
  Window present_, coming_;
  BatchList batches_;  // of the present window
};

}  // namespace qkv
