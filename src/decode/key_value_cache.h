// Keys and values of the encoder's output and of the tokens generated so far, for every layer of every model. Each
// hypothesis has a slot. Each token has one row of the cache, shared by all hypotheses that contain it, so that nothing
// is copied when a hypothesis branches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/ensemble.h"

namespace qkv {

class KeyValueCache {
 public:
  // Encodes the sources and reserves memory from the arena for `beam` hypotheses of each, with at most `capacity`
  // tokens. Models and arena must outlive the cache.
  KeyValueCache(const Ensemble& models, const Packed& sources, int64_t beam, int64_t capacity, Context& c);

  // Returns the slot of the first, still empty hypothesis of a sequence.
  int32_t first_slot(int64_t sequence) const { return static_cast<int32_t>(sequence * beam_); }

  // Replaces the hypotheses of one sequence by at most `beam` children: child i starts with the tokens of parents[i],
  // and its slot is written to children[i]. Hypotheses that are no parent are dropped. May be called concurrently for
  // different sequences.
  void branch(int64_t sequence, std::span<const int32_t> parents, std::span<int32_t> children);

  // Begins a step, which appends one token to every hypothesis that is then added. The hypotheses of a sequence must be
  // added one after the other.
  void begin_step();
  void add(int64_t sequence, int32_t slot);
  // Appends ids, [N], to the added hypotheses, and returns their last hidden states of model m, [N, d].
  Matrix<float> step(size_t m, std::span<const int32_t> ids, Context& c);

  // Gives every slot `tokens` tokens of zeros in rows of its own. This is the largest possible state, for a step that
  // only measures memory.
  void fill(int64_t tokens);

 private:
  using LayerCaches = std::vector<Layer<float>::Cache>;

  const Ensemble& models_;
  int64_t beam_, sequences_;
  std::vector<int32_t> source_offsets_;
  std::vector<LayerCaches> caches_;             // for each model
  std::vector<std::vector<int32_t>> slots_;     // the rows of each hypothesis, token by token
  std::vector<int32_t> users_;                  // for each row: the number of hypotheses that use it
  std::vector<int32_t> free_;                   // unused rows that were used before
  std::vector<std::vector<int32_t>> given_up_;  // for each sequence: rows that become free at the next step
  int32_t rows_ = 0;                            // number of rows ever used
  // The current step:
  std::vector<int32_t> positions_, new_rows_, self_rows_, self_begin_, self_end_, cross_begin_, cross_end_;
};

}  // namespace qkv
