// Scores of translations against one reference each: BLEU and chrF, the numbers that sacreBLEU gives.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace qkv {

// Papineni et al. (2002), corpus level, with sacreBLEU's 13a tokens and exponential smoothing.
struct BleuScore {
  double score = 0;                    // 0 … 100
  std::array<double, 4> precisions{};  // of 1- to 4-grams, 0 … 100
  double brevity_penalty = 0;
  int64_t hypothesis_length = 0, reference_length = 0;  // tokens
};

// Popović (2015): chrF2, character 1- to 6-grams without spaces.
struct ChrfScore {
  double score = 0;  // 0 … 100
};

// Line i of hypotheses is scored against line i of references; all valid UTF-8. Throws Error if the counts differ.
BleuScore bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
               bool lowercase = false);
ChrfScore chrf(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
               bool lowercase = false);

}  // namespace qkv
