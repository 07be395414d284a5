// The page writes the same in src/program/explain/assets/explain_math.js; a test compares them.
#include "program/explain/text/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "ops/activation.h"
#include "program/explain/tables.h"

namespace qkv {
namespace {

// In parentheses if it has a sign.
std::string operand(double x) { return x < 0 ? "(" + number_text(x) + ")" : number_text(x); }

std::string product_text(double a, double b) { return operand(a) + "×" + operand(b); }

std::string joined(const std::vector<std::string>& terms) { return fmt::format("{}", fmt::join(terms, " + ")); }

std::vector<double> row_of(const NumberTable& A, int64_t i) {
  return {A.values.begin() + i * A.columns, A.values.begin() + (i + 1) * A.columns};
}

std::vector<std::string> each(const std::vector<double>& values, std::string (*write)(double)) {
  std::vector<std::string> result;
  for (const double value : values) result.push_back(write(value));
  return result;
}

double slope(Activation kind, double x) {
  const double one = 1;
  double result = 0;
  activation_backward<double>(kind, {&x, 1, 1}, {&one, 1, 1}, {}, {&result, 1, 1}, {0, 1, 0, 1});
  return result;
}

// Writes what is on the left of "=", for one value of a step.
class ArithmeticText {
 public:
  ArithmeticText(const std::map<std::string, const ExplainedStep*>& steps, const ExplainedStep& step, bool columns)
      : steps_(steps), step_(step), origin_(step.origin), columns_(columns) {
    if (origin_.kind == StepKind::exponential) shifts_ = exponential_shifts(A(), origin_.number);
  }

  // Empty: the value is given, or copied.
  std::string of(int64_t i, int64_t j) const {
    switch (origin_.kind) {
      case StepKind::sum:
        return sum(i, j);
      case StepKind::difference:
        return operand(A().at(i, j)) + " − " + operand(B().at(i, j));
      case StepKind::times:
        return product_text(A().at(i, j), B().at(i, j));
      case StepKind::scaled:
        return origin_.index ? fmt::format("{} / √{}", operand(A().at(i, j)), origin_.index)
                             : product_text(origin_.number, A().at(i, j));
      case StepKind::masked:
        return masked(i, j);
      case StepKind::exponential:
        return exponential(i, j);
      case StepKind::row_sums:
        return joined(each(row_of(A(), i), operand));
      case StepKind::shares:
        return B().at(i, 0) == 0 ? "" : number_text(A().at(i, j)) + " / " + number_text(B().at(i, 0));
      case StepKind::jacobian:
        return jacobian(i, j);
      case StepKind::row_products:
        return row_product(i, j);
      case StepKind::statistics:
        return statistics(i, j);
      case StepKind::norm:
        return norm(i, j);
      case StepKind::norm_gradient:
        return norm_gradient(i, j);
      case StepKind::gain_gradient:
        return gain_gradient(j);
      case StepKind::column_sums:
        return joined(each(row_of(transposed(A()), j), operand));
      case StepKind::activation:
        return origin_.activation == Activation::relu
                   ? fmt::format("max(0, {})", number_text(A().at(i, j)))
                   : fmt::format("{}({})", name_of(origin_.activation), number_text(A().at(i, j)));
      case StepKind::activation_gradient:
        return product_text(slope(origin_.activation, A().at(i, j)), B().at(i, j));
      case StepKind::losses:
        return loss(i);
      case StepKind::largest:
        return fmt::format("max({})", fmt::join(each(row_of(A(), i), number_text), ", "));
      case StepKind::given:
      case StepKind::constant:
      case StepKind::columns:
      case StepKind::side_by_side:
        return "";
    }
    return "";
  }

 private:
  const NumberTable& table(const std::string& id) const { return steps_.at(id)->values; }
  const NumberTable& A() const { return table(origin_.of[0]); }
  const NumberTable& B() const { return table(origin_.of[1]); }
  const NumberTable& C() const { return table(origin_.of[2]); }

  void add_product(const StepTerm& term, int64_t i, int64_t j, std::vector<std::string>& terms) const {
    const NumberTable &L = table(term.left), &R = table(term.right);
    const int64_t inner = term.left_transposed ? L.rows : L.columns;
    for (int64_t k = 0; k < inner; k++) {
      const double l = term.left_transposed ? L.at(k, i) : L.at(i, k);
      const double r = term.right_transposed ? R.at(j, k) : R.at(k, j);
      terms.push_back(columns_ ? product_text(r, l) : product_text(l, r));
    }
  }
  std::string sum(int64_t i, int64_t j) const {
    std::vector<std::string> terms, biases;
    for (const StepTerm& term : origin_.terms) {
      if (term.repeated)
        (columns_ ? biases : terms).push_back(operand(table(term.left).at(0, j)));
      else if (term.right.empty())
        terms.push_back(operand(table(term.left).at(i, j)));
      else
        add_product(term, i, j, terms);
    }
    biases.insert(biases.end(), terms.begin(), terms.end());
    return joined(biases);
  }
  std::string masked(int64_t i, int64_t j) const {
    const double m = origin_.flag && j > i   ? -std::numeric_limits<double>::infinity()
                     : origin_.of.size() > 1 ? B().at(i, j)
                                             : 0;
    return operand(A().at(i, j)) + " + " + operand(m);
  }
  std::string exponential(int64_t i, int64_t j) const {
    const double s = A().at(i, j);
    return shifts_.empty() ? fmt::format("exp({})", number_text(s))
                           : fmt::format("exp({} − {})", operand(s), operand(shifts_.at(i, 0)));
  }
  std::string jacobian(int64_t i, int64_t j) const {
    const double a = A().at(origin_.index, i), b = A().at(origin_.index, j);
    return i == j ? fmt::format("{}×(1 − {})", number_text(a), number_text(b))
                  : fmt::format("−{}×{}", number_text(a), number_text(b));
  }
  std::string row_product(int64_t i, int64_t j) const {
    const NumberTable& J = table(origin_.of[to_size(i + 1)]);
    std::vector<std::string> terms;
    for (int64_t k = 0; k < J.rows; k++) {
      const double d = A().at(i, k), slope_of_row = J.at(k, j);
      terms.push_back(columns_ ? product_text(slope_of_row, d) : product_text(d, slope_of_row));
    }
    return joined(terms);
  }
  std::string statistics(int64_t i, int64_t j) const {
    const std::vector<double> row = row_of(A(), i);
    if (j == 0 && !origin_.flag) return fmt::format("({}) / {}", joined(each(row, operand)), row.size());
    std::vector<std::string> squares;
    for (const double x : row)
      squares.push_back(origin_.flag ? operand(x) + "²"
                                     : fmt::format("({} − {})²", operand(x), operand(step_.values.at(i, 0))));
    return fmt::format("√(({}) / {} + {})", joined(squares), row.size(), number_text(origin_.number));
  }
  double sigma(const NumberTable& statistics, int64_t i) const { return statistics.at(i, statistics.columns - 1); }
  // (x − μ) / σ
  double normalized(const NumberTable& x, const NumberTable& statistics, int64_t i, int64_t j) const {
    return (x.at(i, j) - (statistics.columns == 2 ? statistics.at(i, 0) : 0)) / sigma(statistics, i);
  }
  std::string norm(int64_t i, int64_t j) const {
    const std::string gain = operand(C().at(0, j)) + "×", sigma_text = number_text(sigma(B(), i));
    if (B().columns == 1) return fmt::format("{}{} / {}", gain, operand(A().at(i, j)), sigma_text);
    return fmt::format("{}({} − {}) / {} + {}", gain, operand(A().at(i, j)), operand(B().at(i, 0)), sigma_text,
                       operand(table(origin_.of[3]).at(0, j)));
  }
  std::string norm_gradient(int64_t i, int64_t j) const {
    const NumberTable &x = B(), &statistics = C(), &gamma = table(origin_.of[3]);
    double mean = 0, mean_product = 0;
    for (int64_t k = 0; k < x.columns; k++) {
      const double g = gamma.at(0, k) * A().at(i, k);
      mean += g / static_cast<double>(x.columns);
      mean_product += g * normalized(x, statistics, i, k) / static_cast<double>(x.columns);
    }
    const std::string centered = origin_.flag ? "" : operand(mean) + " − ";
    return fmt::format("({} − {}{}) / {}", operand(gamma.at(0, j) * A().at(i, j)), centered,
                       product_text(normalized(x, statistics, i, j), mean_product), number_text(sigma(statistics, i)));
  }
  std::string gain_gradient(int64_t j) const {
    std::vector<std::string> terms;
    for (int64_t i = 0; i < A().rows; i++) terms.push_back(product_text(A().at(i, j), normalized(B(), C(), i, j)));
    return joined(terms);
  }
  std::string loss(int64_t i) const {
    std::vector<std::string> terms;
    for (int64_t v = 0; v < B().columns; v++) {
      const double q = B().at(i, v);
      if (q == 0) continue;
      terms.push_back((q == 1 ? "" : operand(q) + "×") + "log " + number_text(C().at(i, v)));
    }
    return terms.size() == 1 ? "−" + terms.front() : "−(" + joined(terms) + ")";
  }

  const std::map<std::string, const ExplainedStep*>& steps_;
  const ExplainedStep& step_;
  const StepOrigin& origin_;
  bool columns_;
  NumberTable shifts_ = {};  // of exponentials; empty: none
};

// Returns an upper bound of the terms in the arithmetic of one value. Kinds that do not depend on a width have at most
// six numbers.
int64_t terms_of(const std::map<std::string, const ExplainedStep*>& steps, const StepOrigin& origin) {
  const auto table = [&](const std::string& id) -> const NumberTable& { return steps.at(id)->values; };
  int64_t terms = 1;  // the result
  switch (origin.kind) {
    case StepKind::given:
    case StepKind::constant:
    case StepKind::columns:
    case StepKind::side_by_side:
      return 0;
    case StepKind::sum:
      for (const StepTerm& term : origin.terms) {
        const NumberTable& L = table(term.left);
        terms += term.right.empty() ? 1 : term.left_transposed ? L.rows : L.columns;
      }
      return terms;
    case StepKind::row_sums:
    case StepKind::row_products:
    case StepKind::largest:
    case StepKind::losses:
      return terms + table(origin.of[0]).columns;
    case StepKind::statistics:  // with the mean in each, and what follows them
      return terms + 2 * table(origin.of[0]).columns + 1;
    case StepKind::column_sums:
    case StepKind::gain_gradient:
      return terms + table(origin.of[0]).rows;
    default:
      return terms + 3;
  }
}

// Throws Error if the arithmetic is longer than an explanation may be.
void check_length(const Explanation& explanation, const std::map<std::string, const ExplainedStep*>& steps) {
  int64_t terms = 0;
  for (const ExplainedSection& section : explanation)
    for (const ExplainedStep& step : section.steps)
      terms += step.values.rows * step.values.columns * terms_of(steps, step.origin);
  if (terms > kMostArithmeticTerms)
    fail("explain: the arithmetic has {} terms, expected at most {}: give smaller matrices or fewer heads", terms,
         kMostArithmeticTerms);
}

}  // namespace

std::string number_text(double x) {
  if (std::isinf(x)) return "−∞";
  if (x == 0) return "0";
  if (std::abs(x) >= 1e6 || std::abs(x) < 1e-2) return fmt::format("{:.3e}", x);
  std::string text = fmt::format("{:.3f}", x);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::map<std::string, const ExplainedStep*> steps_by_id(const Explanation& explanation) {
  std::map<std::string, const ExplainedStep*> steps;
  for (const ExplainedSection& section : explanation)
    for (const ExplainedStep& step : section.steps) steps[step.id] = &step;
  return steps;
}

void add_arithmetic(Explanation& explanation, bool columns) {
  const std::map<std::string, const ExplainedStep*> steps = steps_by_id(explanation);
  check_length(explanation, steps);
  for (ExplainedSection& section : explanation)
    for (ExplainedStep& step : section.steps) {
      const ArithmeticText text(steps, step, columns);
      std::vector<std::string> all;
      for (int64_t i = 0; i < step.values.rows; i++)
        for (int64_t j = 0; j < step.values.columns; j++) {
          std::string left = text.of(i, j);
          if (!left.empty()) left += " = " + number_text(step.values.at(i, j));
          all.push_back(std::move(left));
        }
      if (std::ranges::any_of(all, [](const std::string& entry) { return !entry.empty(); }))
        step.arithmetic = std::move(all);
    }
}

}  // namespace qkv
