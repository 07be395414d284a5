// BLEU and chrF of translations against one reference each. The scores equal those of sacreBLEU.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

// Corpus BLEU: Papineni et al. (2002), with the 13a tokenization and exponential smoothing of sacreBLEU.
struct BleuScore {
  double score = 0;                    // 0 … 100
  std::array<double, 4> precisions{};  // of 1- to 4-grams, 0 … 100
  double brevity_penalty = 0;
  int64_t hypothesis_length = 0, reference_length = 0;  // tokens
};

// chrF2: Popović (2015), with character 1- to 6-grams without spaces.
struct ChrfScore {
  double score = 0;  // 0 … 100
};

// Score line i of hypotheses against line i of references. All lines must be valid UTF-8. Throw Error if the numbers of
// lines differ.
BleuScore bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
               bool lowercase = false);
ChrfScore chrf(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
               bool lowercase = false);

}  // namespace qkv
