// A sequence that an engine decodes: the hypotheses of a sentence, or a text that is generated.
#pragma once

#include <cstdint>
#include <span>

#include "decode/engine/key_value_cache.h"
#include "decode/search/candidates.h"

namespace qkv {

// The most that a sequence needs at once: rows of a step, and keys and values.
struct SequenceNeed {
  int64_t rows = 1;
  CacheRows cache = {};
};

class Sequence {
 public:
  // key: names the request that the sequence belongs to.
  Sequence(uint64_t key, const SequenceNeed& need) : key_(key), need_(need) {}
  virtual ~Sequence() = default;

  uint64_t key() const { return key_; }
  const SequenceNeed& need() const { return need_; }

  // A paused sequence keeps its rows and takes no step.
  bool paused() const { return paused_; }
  void pause(bool paused) { paused_ = paused; }

  // Returns the tokens that the encoder reads before the sequence starts; none for a decoder-only model.
  virtual std::span<const int32_t> source() const { return {}; }
  // Starts the sequence. rows: those of the source, with need().rows slots.
  virtual void start(KeyValueCache& cache, KeyValueCache::Sentence&& rows) = 0;
  virtual void close(KeyValueCache& cache) = 0;  // gives the rows back

  // Adds what a step reads.
  virtual void read(KeyValueCache& cache) = 0;
  // Returns the tokens of the step, one after the other, whose next tokens are needed.
  virtual RowRange predicting() const = 0;

  // How the next tokens are computed: the best candidates() of each without those of excluded(), or, if that is null,
  // log p of all tokens.
  virtual const Excluded* excluded() const { return nullptr; }
  virtual size_t candidates() const { return 0; }

  // Chooses tokens, given the rows of `log_p`, or of `next` if excluded() is set, from first_row on. Called
  // concurrently for different sequences.
  virtual void extend(Matrix<float> log_p, int64_t first_row, KeyValueCache& cache) = 0;
  virtual void extend(const BestNext& /*next*/, int64_t /*first_row*/, KeyValueCache&) {}  // override with excluded()
  // Reports the tokens that were chosen, and ends the sequence if they are the last.
  virtual void emit(KeyValueCache& cache) = 0;
  virtual bool is_done() const = 0;

 private:
  const uint64_t key_;
  const SequenceNeed need_;
  bool paused_ = false;
};

}  // namespace qkv
