// Keys and values of texts for a decoder-only model: for every layer, one row of the cache per token. Texts with a
// common prefix share its rows, so that a prefix is read only once. A token's keys and values depend only on the token
// and those before it, bit by bit.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "model/transformer.h"

namespace qkv {

class TextCache {
 public:
  struct Text {
    std::string salt = {};
    std::vector<int32_t> ids = {}, rows = {};  // tokens, and the rows of their keys and values
    size_t read = 0;                           // number of tokens read
    size_t shared = 0;                         // number of tokens that were not read again when it was opened
    int64_t last = 0;                          // the last token in the current step
    bool paused = false;                       // no token is read
  };

  // Keeps the most recently closed texts while all texts together take at most `kept_bytes` bytes. The model must
  // outlive the cache.
  TextCache(const Transformer<float>& model, int64_t kept_bytes);

  // Opens a text of 1 to max_length tokens. A prefix that another text with the same salt shares is not read again,
  // except for the last token of the new text.
  Text& open(std::span<const int32_t> ids, const std::string& salt = "");
  void append(Text& text, int32_t id);
  void close(Text& text);

  // Reads tokens of the open texts that are not paused, each of which must have an unread one: the last token of every
  // text of which the others were read, then tokens of the others, in the order of opening: as many as take about the
  // time of the first kStepTokens of a text. So a long prompt does not hold up texts that grow. Sets `ready` to the
  // texts that have been read completely, in the order of opening, and returns the hidden states of their last tokens,
  // [ready, d]. After an exception the cache must not be used again.
  static constexpr int64_t kStepTokens = 512;
  Matrix<float> step(std::vector<Text*>& ready, Context& c);

  const Transformer<float>& model() const { return model_; }
  // Returns the length of the longest prefix that is cached.
  size_t known(std::span<const int32_t> ids, const std::string& salt = "") const;
  int64_t bytes() const;  // returns the size of the allocated rows
  // Returns the number of rows that can be open at once within the limit of kept bytes, and the size of a row.
  int64_t room() const;
  int64_t row_bytes() const;

 private:
  struct Alike {
    const Text* text = nullptr;
    size_t tokens = 0;  // length of the common prefix
  };
  Alike most_alike(std::span<const int32_t> ids, const std::string& salt) const;
  int64_t work_at(size_t place) const;
  int64_t read(Text& text, int64_t work);
  int32_t new_row();
  void forget();  // drops the text that was closed first
  void give_up(const Text& text, size_t from);

  const Transformer<float>& model_;
  int64_t kept_rows_ = 0;
  std::deque<Arena> memory_;                 // for each layer: contiguous rows
  std::vector<Layer<float>::Cache> caches_;  // views of memory_
  std::vector<int32_t> users_;               // for each row: the number of texts that use it
  std::vector<char> filled_;                 // for each row: whether its token was read
  std::vector<int32_t> free_;                // unused rows
  std::list<Text> open_, kept_;              // in the order of opening and of closing
  std::vector<int32_t> ids_, positions_, new_rows_, rows_, begin_, end_;  // the current step
};

// A pool of text caches that successive calls reuse. Keeps at most `bytes` bytes of caches between calls. The model
// must outlive the pool. Methods are thread-safe.
class Caches {
 public:
  Caches(const Transformer<float>& model, int64_t bytes) : model_(model), bytes_(bytes) {}

  // Returns the kept cache that holds the most tokens of these texts, or a new cache if none is kept.
  std::unique_ptr<TextCache> take(const std::vector<std::vector<int32_t>>& texts);
  void give_back(std::unique_ptr<TextCache> cache);  // drops the oldest caches beyond `bytes`

 private:
  const Transformer<float>& model_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<TextCache>> waiting_;  // in the order in which they were given back
};

}  // namespace qkv
