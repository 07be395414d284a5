// The losses that train embedders and classifiers. Each is a mean over the texts or rows of a batch.
#pragma once

#include <array>
#include <string_view>

namespace [[gnu::visibility("default")]] qkv {

// The similarity sim(a, b) of two vectors.
//   cosine  a·b / (‖a‖ ‖b‖), and 0 if one of them is 0
//   dot     a·b
enum class Similarity { cosine, dot };
constexpr std::array<std::string_view, 2> names_of(Similarity) { return {"cosine", "dot"}; }

// The loss of N rows of texts whose vectors are a_i (anchor), p_i (positive) and n_i (negatives), with a score y_i.
// s_ij = sim(a_i, c_j) / τ with the temperature τ; the candidates c_j are the positives of all rows, then the negatives
// of all rows.
//   automatic   cosent for two texts and a score, margin_mse for three texts and a score, distill with a teacher,
//               otherwise info_nce
//   info_nce    −1/N Σ_i log(exp(s_ii) / Σ_j exp(s_ij))
//   cosent      log(1 + Σ_{y_i > y_j} exp(s_jj − s_ii))
//   cosine      1/N Σ_i (sim(a_i, p_i) − y_i)²
//   margin_mse  1/N Σ_i (sim(a_i, p_i) − sim(a_i, n_i) − y_i)²
//   distill     the mean of (v − t)² over the components of all vectors v and those of the teacher, t
enum class VectorLoss { automatic, info_nce, cosent, cosine, margin_mse, distill };
constexpr std::array<std::string_view, 6> names_of(VectorLoss) {
  return {"automatic", "info_nce", "cosent", "cosine", "margin_mse", "distill"};
}

// The loss of N rows with the logits z_ik of K labels, σ(x) = 1 / (1 + exp(−x)).
//   automatic  softmax for one label per text, sigmoid for several, squared for numbers
//   softmax    −1/N Σ_i w_t log(exp(z_it) / Σ_k exp(z_ik)) for the label t of row i and its weight w_t
//   sigmoid    −1/(NK) Σ_ik (w_k y_ik log σ(z_ik) + (1 − y_ik) log(1 − σ(z_ik)))
//   squared    1/(NK) Σ_ik (z_ik − y_ik)²
//   pairwise   the mean of −log₂ σ(z_i − z_j) over the pairs of rows of one list with the relevances y_i > y_j
//   listwise   the mean over the lists of −Σ_i q_i log p_i, where q is the softmax of the relevances of a list and p
//              that of its logits
enum class LabelLoss { automatic, softmax, sigmoid, squared, pairwise, listwise };
constexpr std::array<std::string_view, 6> names_of(LabelLoss) {
  return {"automatic", "softmax", "sigmoid", "squared", "pairwise", "listwise"};
}

}  // namespace qkv
