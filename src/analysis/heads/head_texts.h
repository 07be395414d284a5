// The texts, pairs or histories on which the heads of a run are analysed, in token ids, with what the scores read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "model/transformer.h"
#include "qkv/heads.h"
#include "qkv/translator.h"

namespace qkv {

// The longest text whose attention is analysed: the weights of a head take 64 MiB.
inline constexpr int64_t kMostHeadTokens = 4096;

// A token as the scores see it. Tokens of both sides with the same spelling have the same key.
struct TextToken {
  std::string piece = "";
  int32_t key = 0;
  bool is_special = false;      // stands around a text, such as <s> and </s>, or belongs to a prefix
  bool is_punctuation = false;  // has neither letters nor digits
};

std::vector<std::string> pieces_of(const std::vector<TextToken>& tokens);

// One side of a text.
struct TextSide {
  std::string prefix = "";             // that the model reads before the text
  std::string text = "";               // as it was read
  std::vector<int32_t> ids = {};       // that the model reads
  std::vector<TextToken> tokens = {};  // one per id
};

struct HeadText {
  int64_t line = 0;                          // from 1
  TextSide source = {}, target = {};         // empty without that side of the model
  std::vector<int32_t> labels = {};          // of the target: the token that each row predicts; of an encoder: `masked`
  std::vector<TextToken> label_tokens = {};  // of the target: one per label
  std::vector<int32_t> masked_ids = {}, masked = {};  // of an encoder: its input for the loss, and the masked places
  std::vector<int32_t> gaps = {};                     // of a recommender with time gaps: one per target id
  std::vector<int32_t> hidden = {};                   // items that a recommender does not list, in increasing order
  int64_t first_position = 0;                         // of the target

  int64_t tokens() const { return std::ssize(source.ids) + std::ssize(target.ids); }
};

struct HeadTexts {
  RunKind kind = RunKind::translator;
  std::unique_ptr<Transformer<float>> model = nullptr;
  std::vector<HeadText> texts = {};
  bool has_loss = true;           // whether the model predicts tokens
  bool own_translations = false;  // the targets are the model's own

  const ModelConfig& config() const { return model->config(); }
  // Returns the number of predicted tokens: of a recommender, the last item of each text.
  int64_t predictions() const;
};

// Returns how a run translates lines of the data: its defaults (decoding.json), with the languages of the options.
TranslateOptions line_options(const std::string& run, const HeadsOptions& options);

// Loads the run and reads the files of the options. Throws Error, naming file and line.
HeadTexts read_head_texts(const std::string& run, const HeadsOptions& options);

// Returns the texts in batches of similar lengths.
std::vector<std::vector<size_t>> batches_of(const HeadTexts& texts, int64_t batch_tokens);

// Returns the texts as one batch. masked: with the tokens of an encoder that are masked for its loss.
Batch batch_of(const HeadTexts& texts, std::span<const size_t> chosen, bool masked = false);

}  // namespace qkv
