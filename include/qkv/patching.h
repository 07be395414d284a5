// Activation patching of a language model or a translator: which hidden states, sublayers or heads carry what makes it
// answer one text and not another. Vig et al., "Investigating Gender Bias in Language Models Using Causal Mediation
// Analysis" (2020); Meng et al., "Locating and Editing Factual Associations in GPT" (2022).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/field.h"

namespace [[gnu::visibility("default")]] qkv {

// The output that is replaced:
//   residual         the hidden state of one layer at one position (qkv/hidden_states.h), the last one before the final
//                    norm
//   attention        what the self-attention of one layer adds to the residual stream at one position
//   cross_attention  what the cross-attention of one layer of a translator's decoder adds at one position
//   feed_forward     what the feed-forward network of one layer adds at one position
//   head             the output of one head of self-attention at all positions, before the output projection
//   cross_head       that of one head of cross-attention
enum class PatchedPart { residual, attention, cross_attention, feed_forward, head, cross_head };
constexpr std::array<std::string_view, 6> names_of(PatchedPart) {
  return {"residual", "attention", "cross-attention", "feed-forward", "head", "cross-head"};
}
constexpr bool is_head(PatchedPart part) { return part == PatchedPart::head || part == PatchedPart::cross_head; }

// The layers whose outputs are replaced. automatic: the encoder of a translator, but for cross-attention; the decoder of
// a language model.
enum class PatchedStack { automatic, encoder, decoder };
constexpr std::array<std::string_view, 3> names_of(PatchedStack) { return {"auto", "encoder", "decoder"}; }

struct PatchOptions {
  PatchedPart part = PatchedPart::residual;
  std::string answer = "";
  std::string wrong = "";
  PatchedStack stack = PatchedStack::automatic;
  std::string prefix = "";
};

template <class Visitor>
void visit_fields(PatchOptions& o, Visitor&& visit) {
  visit("part", o.part,
        {"What is replaced: hidden states, what attention, cross-attention or feed-forward networks add to them, or heads "
         "of self-attention or cross-attention",
         "patch", {}, kCommon});
  visit("answer", o.answer,
        {"Text whose first token is the answer to the clean text; default: the most probable next token there", "patch",
         {}, kCommon});
  visit("wrong", o.wrong,
        {"Text whose first token is the answer to the corrupted text, whose logit is subtracted from the answer's; "
         "default: the most probable next token there, if it is another one, otherwise log p of the answer is measured",
         "patch", {}, kCommon});
  visit("stack", o.stack,
        {"Layers in which it is replaced: those of a translator's encoder or decoder; auto is its encoder, but for "
         "cross-attention, and the decoder of a language model",
         "patch", {}, kCommon});
  visit("prefix", o.prefix,
        {"Beginning of the translation, after which a translator predicts the answer; default: none, the answer is the "
         "first token",
         "patch", {}, kCommon});
}

// The model reads the corrupted text many times. Each time one output is replaced by that of the clean text. The score
// is logit(answer) − logit(wrong) after the last token that the decoder reads, or log p(answer) if there is no wrong
// answer. A recovered share is (score − corrupted) / (clean − corrupted): 0 where the replacement changes nothing, 1
// where it changes all.
struct Patching {
  PatchedPart part = PatchedPart::residual;
  PatchedStack stack = PatchedStack::decoder;
  std::vector<std::string> clean, corrupted;          // tokens that the stack reads, with a start token if there is one
  std::string answer, wrong;                          // tokens; wrong is empty if there is none
  double clean_score = 0, corrupted_score = 0;        // of the two texts as they are
  int64_t layers = 0, columns = 0;                    // rows and columns; residual has one row more, the embeddings
  std::vector<double> scores = {}, recovered = {};    // [layers, columns]: of positions, or of heads
};

// Returns a table for a terminal: a row for each layer, and a column for each token or head, with recovered shares.
// Lines have at most 100 columns.
std::string patching_to_text(const Patching& patching);

// Returns JSON with all members; scores and recovered are [[…] …], by layer.
std::string patching_to_json(const Patching& patching);

}  // namespace qkv
