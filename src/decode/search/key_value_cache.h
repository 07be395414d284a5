// Keys and values of the encoder's output and of the tokens generated so far, for every layer of every model. Sequences
// come and go between steps. Each hypothesis has a slot. Each token has one row of the cache, shared by all hypotheses
// that contain it, so that nothing is copied when a hypothesis branches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/search/ensemble.h"
#include "decode/search/row_pool.h"

namespace qkv {

constexpr int64_t kEncodedTokens = 192;  // source tokens that are encoded at once, per thread

// The room of a cache: rows of generated tokens, and of source tokens.
struct CacheRows {
  int64_t self = 0, cross = 0;

  CacheRows operator+(const CacheRows& other) const { return {self + other.self, cross + other.cross}; }
  CacheRows operator*(int64_t times) const { return {self * times, cross * times}; }
};

// Returns the size of keys and values.
int64_t cache_bytes(const Ensemble& models, const CacheRows& rows);

// Returns the room of a cache in which any rows of up to `bytes` bytes fit, and the bytes to reserve for it.
CacheRows cache_rows(const Ensemble& models, int64_t bytes);
size_t reserved_for(const Ensemble& models, const CacheRows& rows);

class KeyValueCache {
 public:
  // The rows of a sequence and of its hypotheses.
  struct Sequence {
    RowRange cross;                           // consecutive rows of the encoder's output
    std::vector<std::vector<int32_t>> slots;  // the rows of each hypothesis, token by token
    std::vector<int32_t> given_up = {};       // rows that become free at the next step
  };

  // Reserves memory from the arena; pages that are never used are never touched. Models and arena must outlive the
  // cache.
  KeyValueCache(const Ensemble& models, const CacheRows& rows, Arena& memory);

  // Encodes sources, and returns their sequences, each with beams[i] slots. The first slot holds the first, still empty
  // hypothesis. Requires that the sequences and their hypotheses never need more than the cache's rows.
  std::vector<Sequence> open(const Packed& sources, std::span<const int64_t> beams, Context& c);
  bool has_room(int64_t source_tokens) const { return cross_pool_.has(source_tokens); }
  void close(Sequence& sequence);

  // Replaces the hypotheses of one sequence by at most as many children as it has slots: child i starts with the tokens
  // of parents[i], and has slot i. Hypotheses that are no parent are dropped. May be called concurrently for different
  // sequences.
  void branch(Sequence& sequence, std::span<const int32_t> parents);

  // Begins a step, which appends tokens to the hypotheses that are then added, one each time. Attention is fastest if
  // the hypotheses of a sequence are added one after the other.
  void begin_step();
  void add(Sequence& sequence, int32_t slot);
  // Appends ids, [N], to the added hypotheses, and returns their last hidden states of model m, [N, d].
  Matrix<float> step(size_t m, std::span<const int32_t> ids, Context& c);

  // Gives every slot `tokens` tokens of zeros in rows of its own. This is the largest possible state, for a step that
  // only measures memory.
  void fill(Sequence& sequence, int64_t tokens);

  // Gives the memory of blocks of rows that have been unused for some time back to the system.
  void trim(Clock::time_point now);

 private:
  using LayerCaches = std::vector<Layer<float>::Cache>;

  int32_t new_row();

  const Ensemble& models_;
  Arena& memory_;
  std::vector<LayerCaches> caches_;  // for each model
  std::vector<int32_t> users_;       // for each row: the number of hypotheses that use it
  RowPool self_pool_;
  RangePool cross_pool_;
  // The current step:
  std::vector<int32_t> positions_, new_rows_, self_rows_, self_begin_, self_end_, cross_begin_, cross_end_;
};

}  // namespace qkv
