// Keys and values of sequences for every layer of every model: those of the encoder's output, and one row for each
// token that the decoder has read. Sequences come and go between steps. The hypotheses of a sentence share the rows of
// the tokens that they have in common, and so do texts with a common prefix: nothing is copied or read twice. A token's
// keys and values depend only on the token and those before it, bit by bit.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "decode/engine/ensemble.h"
#include "decode/engine/row_pool.h"

namespace qkv {

// Returns the size of keys and values.
int64_t cache_bytes(const Ensemble& models, const CacheRows& rows);

// Returns the room of a cache in which any rows of up to `bytes` bytes fit, and the bytes to reserve for it.
CacheRows cache_rows(const Ensemble& models, int64_t bytes);
size_t reserved_for(const Ensemble& models, const CacheRows& rows);

class KeyValueCache {
 public:
  // The rows of a sentence and of its hypotheses.
  struct Sentence {
    RowRange cross;                           // consecutive rows of the encoder's output
    std::vector<std::vector<int32_t>> slots;  // the rows of each hypothesis, token by token
    std::vector<int32_t> given_up = {};       // rows that become free at the next step
  };

  // A text of a decoder-only model.
  struct Text {
    std::string salt = {};
    std::vector<int32_t> ids = {}, rows = {};  // tokens, and the rows of their keys and values
    size_t read = 0;                           // number of tokens read
    size_t shared = 0;                         // number of tokens that were not read again when it was opened
    int64_t last = -1;                         // the last token in the current step; −1: it is not read there
  };

  // A cache for sentences. Reserves memory from the arena; pages that are never used are never touched. Models and
  // arena must outlive the cache.
  KeyValueCache(const Ensemble& models, const CacheRows& rows, Arena& memory);

  // A cache for texts, which grows with them. Keeps the most recently closed texts while all texts together take at
  // most `kept_bytes` bytes. The model, which is one, must outlive the cache.
  KeyValueCache(const Ensemble& model, int64_t kept_bytes);

  const Ensemble& models() const { return models_; }

  // ---- Sentences

  // Encodes sources, and returns their sentences, each with beams[i] slots. The first slot holds the first, still empty
  // hypothesis. Requires that the sentences and their hypotheses never need more than the cache's rows.
  std::vector<Sentence> open(const Packed& sources, std::span<const int64_t> beams, Context& c);
  bool has_room(int64_t source_tokens) const { return cross_pool_.has(source_tokens); }
  void close(Sentence& sentence);

  // Replaces the hypotheses of one sentence by at most as many children as it has slots: child i starts with the tokens
  // of parents[i], and has slot i. Hypotheses without a child are dropped. May be called concurrently for different
  // sentences.
  void branch(Sentence& sentence, std::span<const int32_t> parents);

  // Gives every slot `tokens` tokens of zeros in rows of its own. This is the largest possible state, for a step that
  // only measures memory.
  void fill(Sentence& sentence, int64_t tokens);

  // ---- Texts

  // Opens a text of 1 to max_length tokens. A prefix that another text with the same salt shares is not read again,
  // except for the last token of the new text.
  Text& open(std::span<const int32_t> ids, const std::string& salt = "");
  void append(Text& text, int32_t id);
  void close(Text& text);
  // Returns the length of the longest prefix that is cached.
  size_t known(std::span<const int32_t> ids, const std::string& salt = "") const;

  int64_t bytes() const;      // returns the size of the allocated rows
  int64_t row_bytes() const;  // returns the size of a row
  int64_t room() const;       // returns the number of rows that can be open at once within the limit of kept bytes

  // ---- Steps

  // Begin and end a step, which reads what is added between them.
  void begin_step();
  void end_step();

  // Appends a token to the hypothesis of a slot. Attention is fastest if the hypotheses of a sentence are added one
  // after the other.
  void add(Sentence& sentence, int32_t slot, int32_t id);

  // Adds a text that has an unread token. The step reads the last token of every text of which the others were read,
  // then tokens of the others, in the order of adding: as many as take about the time of the first kStepTokens of a
  // text. So a long prompt does not hold up texts that grow.
  static constexpr int64_t kStepTokens = 512;
  void add(Text& text);

  // Return the tokens of the step, N of them, and the keys and values of model m.
  int64_t step_tokens() const { return std::ssize(ids_); }
  DecodingStep step() const;
  KeysValues& layers(size_t m) { return *layers_[m]; }

  // Gives the memory of blocks of rows that have been unused for some time back to the system.
  void trim(Clock::time_point now);

 private:
  struct Alike {
    const Text* text = nullptr;
    size_t tokens = 0;  // length of the common prefix
  };

  int32_t new_row();
  void grow();
  Alike most_alike(std::span<const int32_t> ids, const std::string& salt) const;
  int64_t work_at(size_t place) const;
  int64_t read(Text& text, int64_t work);
  void forget();  // drops the text that was closed first
  void give_up(const Text& text, size_t from);
  void add_token(int32_t id, size_t position, int32_t row, int64_t first_key, RowRange cross);

  const Ensemble models_;
  const bool grows_;                                 // with its texts
  std::vector<std::unique_ptr<KeysValues>> layers_;  // of each model
  int64_t rows_ = 0;                                 // for which there is memory
  std::vector<int32_t> users_;                       // for each row: the hypotheses or texts that use it
  std::vector<char> filled_;                         // for each row of a text: whether its token was read
  RowPool self_pool_;
  RangePool cross_pool_;
  int64_t kept_rows_ = 0;
  std::list<Text> open_, kept_;  // in the order of opening and of closing
  // The current step:
  std::vector<Text*> texts_;
  std::vector<int32_t> ids_, positions_, new_rows_, self_rows_, self_begin_, self_end_, cross_begin_, cross_end_;
};

// A pool of caches that successive calls reuse. Keeps at most `bytes` bytes of caches between calls. The model must
// outlive the pool. Methods are thread-safe.
class CachePool {
 public:
  CachePool(const Ensemble& model, int64_t bytes) : model_(model), bytes_(bytes) {}

  // Returns the kept cache that holds the most tokens of these texts, or a new cache if none is kept.
  std::unique_ptr<KeyValueCache> take(const std::vector<std::vector<int32_t>>& texts);
  void give_back(std::unique_ptr<KeyValueCache> cache);  // drops the oldest caches beyond `bytes`

 private:
  const Ensemble model_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<KeyValueCache>> waiting_;  // in the order in which they were given back
};

}  // namespace qkv
