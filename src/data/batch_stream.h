// Batches of a text on disk, over any number of epochs.
//
// An epoch visits the chunks of the text in an order shuffled by (seed, epoch), and divides this order into windows.
// The pairs of a window are shuffled by (seed, epoch, window) and divided into batches, so a text of one window is
// shuffled as a whole. While the batches of one window are used, the next window is read and tokenized, one share with
// each batch. Several ranks divide this work: each reads the chunks of its partition. All ranks have the tokens of all
// chunks before the window is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batcher.h"
#include "data/parallel_data.h"
#include "ranks/rank_partition.h"
#include "text/parallel_corpus.h"
#include "text/tokenizer.h"

namespace qkv {

// The position of the next batch: number `batch` of the window, which is number `window` of the epoch, all from 0.
struct StreamPosition {
  int64_t epoch = 0, window = 0, batch = 0;
  Skipped skipped = {};  // in the finished windows of this epoch

  bool operator==(const StreamPosition&) const = default;
};

struct StreamOptions {
  int64_t max_length = 256;  // longer pairs are skipped, as are those with more than batch_tokens on a side
  int64_t batch_tokens = 4096;
  uint64_t seed = 1;
  int64_t window_chunks = 64;             // largest number of chunks in a window
  std::optional<PairTokens> tokens = {};  // around the texts of a pair; by default PairTokens::of
  // Changes the texts of pairs, of which the first is pair number `first` of the corpus, before they are tokenized. The
  // same pair always becomes the same texts. Called for one chunk at a time. Null: they stay as they are.
  std::function<void(ParallelText& text, int64_t first)> rewrite = {};
};

// A stream of batches that depend only on the text, the tokenizers, the options and the position. Keeps two windows in
// memory. Not thread-safe; uses the thread pool internally. All methods throw Error if the text has changed on disk.
class BatchStream {
 public:
  // The corpus must outlive the stream and must not be empty. Call seek before anything else.
  BatchStream(const ParallelCorpus& corpus, const Tokenizer& source, const Tokenizer& target,
              const StreamOptions& options);

  // Divides the work among ranks. All of them then call seek and look_ahead together, and move through the same
  // batches.
  void partition(const RankPartition& partition);

  // Moves to a position; returns false if there is no such batch. Throws Error if all pairs of the text are skipped.
  bool seek(const StreamPosition& position);
  const StreamPosition& position() const { return position_; }

  // Fills `batch` with the next batch: source = x </s>, target = <s> y, labels = y </s>.
  void next(Batch& batch);
  // Moves past the next batch.
  void skip();
  // Returns the line, from 1, of each pair of the next batch.
  std::vector<int64_t> lines() const;
  // Exchanges the tokens of the next window if it begins within this number of batches. A window that was not exchanged
  // before it begins is tokenized as a whole by each rank.
  void look_ahead(int64_t batches);

  int64_t windows() const;                      // in an epoch
  double part_of_epoch() const;                 // before the next batch, as if all windows had as many batches
  double batches_per_epoch() const;             // the same
  int64_t longest() const { return longest_; }  // largest number of tokens on a side of a pair that is not skipped
  std::string fingerprint() const { return corpus_.fingerprint(); }
  const std::string& path() const { return corpus_.path(); }
  std::string summary() const;        // one line about the text and the current window
  std::string epoch_summary() const;  // the same for the previous epoch

 private:
  struct Window {
    std::vector<int64_t> chunks;                      // in the order of the text
    size_t considered = 0;                            // number of chunks that this rank has tokenized or left to others
    std::vector<std::optional<TokenizedText>> texts;  // of each chunk, until data is complete
    std::shared_ptr<ParallelData> data;
    std::vector<int64_t> ends;  // number of pairs in data after each chunk
    bool complete = false;
  };

  ParallelText read(int64_t chunk) const;
  Window open(int64_t epoch, int64_t window) const;
  void tokenize(Window& window, size_t chunk) const;
  void prepare(Window& window, size_t chunks) const;
  void exchange(Window& window) const;
  void complete(Window& window) const;
  void enter();
  void leave();
  Skipped skipped() const;
  Batcher batcher() const { return Batcher(*current_.data, options_.batch_tokens, options_.seed); }

  const ParallelCorpus& corpus_;
  Tokenizer source_, target_;
  StreamOptions options_;
  RankPartition partition_;
  int64_t longest_;
  StreamPosition position_;
  Skipped last_epoch_;
  Window current_, next_window_;
  BatchList batches_;  // batches of the current window
};

}  // namespace qkv
