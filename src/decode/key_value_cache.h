// What decoding keeps of the encoder's output and of the tokens said so far: keys and values of every layer of every
// model. Hypotheses are known by their slots. A token has one row of the cache, which all hypotheses that hold it
// share, so that nothing is copied when one branches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/ensemble.h"

namespace qkv {

class KeyValueCache {
 public:
  // Encodes the sources. Makes room for `beam` hypotheses of each, of at most `capacity` tokens. The memory is the
  // arena's; models and arena must outlive the cache.
  KeyValueCache(const Ensemble& models, const Packed& sources, int64_t beam, int64_t capacity, Context& c);

  // Where the first hypothesis of a sequence lies, before it has a token.
  int32_t first_slot(int64_t sequence) const { return static_cast<int32_t>(sequence * beam_); }

  // Hypotheses go on: child i, number i of `children`, has the tokens of `parents[i]`, and a slot of its own. All are
  // of one sequence, at most `beam`; the others of the sequence are given up. May be called for several sequences at
  // the same time.
  void branch(int64_t sequence, std::span<const int32_t> parents, std::span<int32_t> children);

  // A step gives every hypothesis that is added one token. Those of one sequence are added one after the other.
  void begin_step();
  void add(int64_t sequence, int32_t slot);
  // The last hidden states that model m gives the added hypotheses, [N, d], after they took `ids`: [N].
  Matrix<float> step(size_t m, std::span<const int32_t> ids, Context& c);

  // Every slot gets `tokens` tokens of zeros and rows that no other has: the most that can be, before a step whose
  // result nobody reads.
  void fill(int64_t tokens);

 private:
  using LayerCaches = std::vector<Layer<float>::Cache>;

  const Ensemble& models_;
  int64_t beam_, sequences_;
  std::vector<int32_t> source_offsets_;
  std::vector<LayerCaches> caches_;             // of each model
  std::vector<std::vector<int32_t>> slots_;     // the rows of each hypothesis, token by token
  std::vector<int32_t> users_;                  // of each row: hypotheses that hold it
  std::vector<int32_t> free_;                   // rows that nobody holds and that were held before
  std::vector<std::vector<int32_t>> given_up_;  // rows of each sequence that become free with the next step
  int32_t rows_ = 0;                            // that were ever held
  // Of this step:
  std::vector<int32_t> positions_, new_rows_, self_rows_, self_begin_, self_end_, cross_begin_, cross_end_;
};

}  // namespace qkv
