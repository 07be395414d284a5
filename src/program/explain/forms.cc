#include "program/explain/forms.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "program/explain/tables.h"

namespace qkv {
namespace {

// Words in the two forms. Where several begin at one place, the first that fits is taken.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"W_gate", "Ω_gate"},
    {"W_Q", "Ω_q"},
    {"W_K", "Ω_k"},
    {"W_V", "Ω_v"},
    {"W_O", "Ω_c"},
    {"W_U", "Ω_u"},
    {"W_1", "Ω_1"},
    {"W_2", "Ω_2"},
    {"b_gate", "β_gate"},
    {"b_Q", "β_q"},
    {"b_K", "β_k"},
    {"b_V", "β_v"},
    {"b_O", "β_c"},
    {"b_U", "β_u"},
    {"b_1", "β_1"},
    {"b_2", "β_2"},
    {"β_", "δ_"},
    {"Q Kᵀ", "Kᵀ Q"},
    {"aᵀ a", "a aᵀ"},
    {"Σⱼ", "Σᵢ"},
    {"Σᵢ", "Σⱼ"},
    {"each row of dA times its J", "J times each column of dA"},
    {"the columns of", "the rows of"},
    {"side by side", "one below the other"},
    {"row sums", "column sums"},
    {"the row", "the column"},
    {"each row", "each column"}};

std::string in_columns(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto word = std::ranges::find_if(kWords, [&](const auto& pair) { return text.starts_with(pair.first); });
    result += word == std::end(kWords) ? text.substr(0, 1) : word->second;
    text.remove_prefix(word == std::end(kWords) ? 1 : word->first.size());
  }
  return result;
}

// "X W_Q"; as columns the factors change places: (A B)ᵀ = Bᵀ Aᵀ.
std::string term_formula(const NamedTerm& term, bool columns) {
  const auto factor = [](const std::string& name, bool transposed) { return name + (transposed ? "ᵀ" : ""); };
  if (term.ids.repeated) return columns ? term.left + " 1ᵀ" : "1 " + term.left + "ᵀ";
  const std::string left = factor(term.left, term.ids.left_transposed);
  if (term.right.empty()) return left;
  const std::string right = factor(term.right, term.ids.right_transposed);
  return columns ? right + " " + left : left + " " + right;
}

std::string sum_formula(std::vector<NamedTerm> terms, bool columns) {
  if (columns)  // the bias stands first
    std::ranges::stable_partition(terms, [](const NamedTerm& term) { return term.ids.repeated; });
  std::vector<std::string> parts;
  bool several = false;
  for (const NamedTerm& term : terms) {
    std::string part = term_formula(term, columns);
    const bool known = std::ranges::find(parts, part) != parts.end();
    several = several || known;
    if (!known) parts.push_back(std::move(part));
  }
  return fmt::format("{}{}", fmt::join(parts, " + "), several ? ", summed over the heads" : "");
}

constexpr std::array<const char*, 3> kSymbols[] = {
    {"X", "X", "tokens: T × d, or d × T"},
    {"W_Q, W_K, W_V", "Ω_q, Ω_k, Ω_v", "weights of the projections, Ω = Wᵀ"},
    {"b_Q, b_K, b_V", "β_q, β_k, β_v", "biases: columns, which are printed as rows where tokens are rows"},
    {"1", "1", "a column of ones, which repeats a bias for each token"},
    {"Q = X W_Q + 1 b_Qᵀ", "Q = β_q 1ᵀ + Ω_q X", "queries; keys and values likewise"},
    {"softmax(Q Kᵀ / √d_k) V", "V softmax(Kᵀ Q / √d_k)", "attention, with the softmax of each row, or each column"},
    {"W_O, b_O", "Ω_c, β_c", "weights and bias of the output of all heads"},
    {"γ, β", "γ, δ", "gain and shift of a norm"},
    {"W_1, b_1, W_2, b_2", "Ω_1, β_1, Ω_2, β_2", "weights and biases of the feed-forward network"},
    {"M", "M", "mask, added to the scores: T × S, or S × T"},
    {"g", "g", "the memory, of which cross-attention takes keys and values: S × d_z, or d_z × S"},
    {"W_U, b_U", "Ω_u, β_u", "weights and bias of the output layer"}};

ExplainedSection symbols_of_both() {
  ExplainedSection section{"Symbols with tokens as rows and as columns", {}};
  for (const auto& [rows, columns, meaning] : kSymbols) section.symbols.push_back({rows, columns, meaning});
  return section;
}

void turn(ExplainedStep& step) {
  const NumberTable& values = step.values;
  std::vector<std::string> arithmetic;
  for (int64_t c = 0; !step.arithmetic.empty() && c < values.columns; c++)
    for (int64_t r = 0; r < values.rows; r++)
      arithmetic.push_back(std::move(step.arithmetic[to_size(r * values.columns + c)]));
  step.arithmetic = std::move(arithmetic);
  step.values = transposed(values);
  std::swap(step.row_labels, step.column_labels);
}

}  // namespace

std::string sum_formula(const std::vector<NamedTerm>& terms) { return sum_formula(terms, false); }

Explanation with_tokens_as_columns(Explanation explanation) {
  std::map<std::string, std::string> names;
  for (ExplainedSection& section : explanation)
    for (ExplainedStep& step : section.steps) {
      if (step.origin.kind != StepKind::jacobian) step.name = in_columns(step.name);  // that has the label of a token
      names[step.id] = step.name;
      step.formula = in_columns(step.formula);
      if (step.origin.kind == StepKind::sum) {
        std::vector<NamedTerm> terms;
        for (const StepTerm& term : step.origin.terms) terms.push_back({term, names[term.left], names[term.right]});
        step.formula = sum_formula(std::move(terms), true);
      }
      turn(step);
    }
  explanation.insert(explanation.begin(), symbols_of_both());
  return explanation;
}

}  // namespace qkv
