// Measures of predicted numbers, such as similarities, against true ones.
#pragma once

#include <span>

namespace qkv {

// Each of these takes two lists of the same length and throws Error if their lengths differ. Sums are of doubles, in
// order, so the results do not depend on the number of threads.

// Returns Pearson's correlation, from −1 to 1: Σ (a − ā)(b − b̄) / √(Σ (a − ā)² Σ (b − b̄)²). 0 where it is not defined:
// for fewer than two values, or if one list is constant. NaN if a value is not finite.
double pearson(std::span<const double> a, std::span<const double> b);

// Returns Spearman's correlation: that of the ranks, where equal values have the mean of their ranks, as
// scipy.stats.spearmanr computes it. 0 where pearson of the ranks is; NaN if a value is NaN.
double spearman(std::span<const double> a, std::span<const double> b);

// Returns the mean of (a − b)²; 0 without values.
double mean_squared_error(std::span<const double> a, std::span<const double> b);

}  // namespace qkv
