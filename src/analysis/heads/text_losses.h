// The losses of the texts of a batch, one by one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/heads/head_texts.h"
#include "model/layers/context.h"
#include "qkv/matrix.h"

namespace qkv {

struct TextLoss {
  double nll = 0;  // sum over the labels, in nats
  int64_t labels = 0;
  double ndcg10 = 0;  // of a recommender: 1 / log₂(1 + r) for the rank r of the last item if r ≤ 10, otherwise 0; the
                      // rank is that of qkv evaluate, among the items that are not hidden
};

// Returns the losses of texts of a model with a decoder; h: [tokens of batch.target, d], the last hidden states. For a
// recommender, the loss and the rank are those of the last item, given all items before it.
std::vector<TextLoss> text_losses(const HeadTexts& texts, std::span<const size_t> chosen, const Batch& batch,
                                  Matrix<const float> h, Context& c);

// The same for an encoder: of the masked tokens, with one pass for each text.
std::vector<TextLoss> masked_text_losses(const HeadTexts& texts, std::span<const size_t> chosen, Context& c);

}  // namespace qkv
