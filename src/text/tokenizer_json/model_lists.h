// The vocabulary and the merges of a tokenizer.json, which are read item by item: they may be long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "text/tokenizer_json/added_tokens.h"

namespace qkv {

// model.vocab, an object of pieces and ids or an array of pieces and scores, and model.merges, an array of "a b" or
// ["a", "b"].
class ModelLists {
 public:
  // Errors are reported by check: it may be the list of another model.
  void take(const JsonItem& item);
  // Gives ids that no piece has to the added tokens with these ids.
  void fill(const std::vector<AddedToken>& added);
  // Throws Error, beginning with `where`, for lists that are broken, and for an id that no piece has.
  void check(const std::string& where) const;

  std::vector<std::string> take_pieces() { return std::move(pieces_); }  // by id
  std::vector<double> take_scores() { return std::move(scores_); }       // of an array
  std::string take_merges() { return std::move(merges_); }               // see add_pair in pipeline.h

 private:
  void add_piece(const JsonItem& item);
  void add_scored_piece(const JsonItem& item);
  void add_part_of_merge(const JsonItem& item);

  std::vector<std::string> pieces_;
  std::vector<double> scores_;
  std::string merges_, left_, wrong_;
  int64_t count_ = 0;  // merges
  bool half_ = false;  // the first piece of a pair is there
};

}  // namespace qkv
