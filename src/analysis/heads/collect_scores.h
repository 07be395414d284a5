// All scores of all heads on texts, and the weights of a few texts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/heads/head_scores.h"
#include "analysis/heads/word_agreement.h"

namespace qkv {

// The sums of one head.
struct HeadSums {
  std::vector<RowSum> token_scores = {}, shape_scores = {};
  std::vector<std::vector<float>> of_texts = {};  // [token score][text]: means over the rows of a text; −1 without
                                                  // rows. Empty unless requested
  std::vector<int64_t> hits = {};                 // by measure of WordAgreements
};

struct CollectedScores {
  std::vector<HeadPlace> places = {};
  std::vector<HeadSums> heads = {};                                         // by place
  std::vector<std::vector<RowSum>> token_uniform = {}, shape_uniform = {};  // [part][score]: of uniform attention
};

// of_texts: whether HeadSums has the scores of each text.
CollectedScores collect_scores(const HeadTexts& texts, std::span<const std::vector<size_t>> batches, Arena& arena,
                               const WordAgreements& agreements, bool of_texts);

}  // namespace qkv
