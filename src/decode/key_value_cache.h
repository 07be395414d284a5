// What decoding keeps of the encoder's output and of the tokens said so far: keys and values of every layer of every
// model. Hypotheses are known by their slots; where the rows of a slot lie, nobody else knows.
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

  // Hypotheses of t tokens go on: child i, number i of `children`, has the tokens of `parents[i]`, and a slot of its
  // own. All are of one sequence, at most `beam`; slots that are no parent's are given up. May be called for several
  // sequences at the same time.
  void branch(int64_t sequence, std::span<const int32_t> parents, int64_t t, std::span<int32_t> children);

  // A step gives every hypothesis that is added one token, number t from 0. Those of one sequence are added one after
  // the other.
  void begin_step();
  void add(int64_t sequence, int32_t slot, int64_t t);
  // The logits that model m gives the added hypotheses, [N, V], after they took `ids`: [N].
  Matrix<float> logits(size_t m, std::span<const int32_t> ids, Context& c);

  // Tokens that were never set become zeros, for a step whose result nobody reads.
  void fill_with_zeros();

 private:
  using LayerCaches = std::vector<DecoderLayer<float>::Cache>;

  const Ensemble& models_;
  int64_t beam_, capacity_;
  std::vector<int32_t> source_offsets_;
  std::vector<LayerCaches> caches_;  // of each model: slot s has the rows [s · capacity, s · capacity + t)
  // Of this step, a number for each hypothesis:
  std::vector<int32_t> positions_, new_rows_, q_begin_, self_begin_, self_end_;
  // and for each sequence, whose hypotheses are queries of one range of keys:
  std::vector<int32_t> cross_q_, cross_begin_, cross_end_;
  int64_t last_sequence_ = -1;
};

}  // namespace qkv
