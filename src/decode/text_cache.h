// What a decoder-only model has read of many texts: keys and values of every layer, one row of the cache a token. Texts
// that begin alike share the rows of what they have in common, whether it has been read or is about to be, so that a
// beginning is read once. A token's keys and values depend on it and what stands before it alone, bit by bit.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/transformer.h"

namespace qkv {

class TextCache {
 public:
  struct Text {
    std::vector<int32_t> ids, rows;  // its tokens, and where their keys and values lie
    size_t read = 0;                 // of its tokens
  };

  // Of texts that are closed it keeps the last ones, as long as all texts together take no more than `kept_bytes`. The
  // model must outlive it.
  TextCache(const Transformer<float>& model, int64_t kept_bytes);

  // A text of at least one token and at most the model's max_length. What another one shares with its beginning is not
  // read again, but for its last token.
  Text& open(std::span<const int32_t> ids);
  void append(Text& text, int32_t id);
  void close(Text& text);

  // Reads up to kStepTokens tokens of the open texts, in the order of opening; each has one at least that is not read.
  // `ready` becomes the texts that are read to their ends; the result has the hidden states of their last tokens,
  // [ready, d]. After an exception the cache is of no more use.
  static constexpr int64_t kStepTokens = 512;
  Matrix<float> step(std::vector<Text*>& ready, Context& c);

  const Transformer<float>& model() const { return model_; }
  size_t known(std::span<const int32_t> ids) const;  // tokens that a text begins with and that are here
  int64_t bytes() const;                             // of the rows that it has ever had

 private:
  struct Alike {
    const Text* text = nullptr;
    size_t tokens = 0;  // that both begin with
  };
  Alike most_alike(std::span<const int32_t> ids) const;
  int64_t row_bytes() const;
  int32_t new_row();
  void forget();  // the text that was closed first
  void give_up(const Text& text, size_t from);

  const Transformer<float>& model_;
  int64_t kept_rows_ = 0;
  std::deque<Arena> memory_;                 // of each layer: rows from its beginning, without a gap
  std::vector<Layer<float>::Cache> caches_;  // views of them
  std::vector<int32_t> users_;               // of each row: texts that hold it
  std::vector<char> filled_;                 // of each row: whether its token was read
  std::vector<int32_t> free_;                // rows that nobody holds
  std::list<Text> open_, kept_;              // in the order of opening and of closing
  std::vector<int32_t> ids_, positions_, new_rows_, rows_, begin_, end_;  // of a step
};

}  // namespace qkv
