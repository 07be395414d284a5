#include "program/explain/text/findings.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "program/explain/text/arithmetic.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr int64_t kMostNamed = 4;  // tokens of which a sentence speaks

std::string quoted(const std::string& label) { return "\"" + shortened(label, kLongestLabel) + "\""; }

double length_of_row(const NumberTable& A, int64_t i) {
  double squares = 0;
  for (int64_t j = 0; j < A.columns; j++) squares += A.at(i, j) * A.at(i, j);
  return std::sqrt(squares);
}

// Returns the columns of a row, the largest value first.
std::vector<int64_t> columns_by_value(const NumberTable& A, int64_t i) {
  std::vector<int64_t> order(to_size(A.columns));
  for (size_t j = 0; j < order.size(); j++) order[j] = static_cast<int64_t>(j);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](int64_t j) { return A.at(i, j); });
  return order;
}

struct NumberSpan {
  double least, largest;
};
// Returns the span of the finite values; nothing if there is none.
std::optional<NumberSpan> span_of(const NumberTable& A) {
  std::optional<NumberSpan> span;
  for (const double value : A.values) {
    if (!std::isfinite(value)) continue;
    if (!span) span = {value, value};
    span->least = std::min(span->least, value), span->largest = std::max(span->largest, value);
  }
  return span;
}

std::string text_of(const NumberSpan& span) {
  if (span.least == span.largest) return number_text(span.least);
  return fmt::format("from {} to {}", number_text(span.least), number_text(span.largest));
}

class FindingText {
 public:
  explicit FindingText(const std::map<std::string, const ExplainedStep*>& steps) : steps_(steps) {}

  // Empty: nothing is said.
  std::string of(const ExplainedStep& step) const {
    const std::string id = step.id.substr(step.id.find_last_of('.') + 1);
    const NumberTable& A = step.values;
    switch (step.origin.kind) {
      case StepKind::given:
      case StepKind::sum:
        return id == "output" && step.name == "O" ? mixture(step) : of_sum(step, id);
      case StepKind::scaled:
        return id == "scaled" ? scaled(step) : "";
      case StepKind::masked:
        return hidden(A);
      case StepKind::exponential:
        return positive(step);
      case StepKind::shares:
        return id == "weights" ? attended(step) : likely(step);
      case StepKind::row_products:
        return "The sum over the keys is 0 for each query: more weight on one key is less on the others.";
      case StepKind::norm:
        return fmt::format("The length of a row is {}, before the norm {}.", text_of(lengths(A)),
                           text_of(lengths(values(step.origin.of[0]))));
      case StepKind::activation:
        return zeros(step);
      default:
        return "";
    }
  }

 private:
  const NumberTable& values(const std::string& id) const { return steps_.at(id)->values; }

  std::string of_sum(const ExplainedStep& step, const std::string& id) const {
    if (id == "Q") return "A query for each token: what it looks for.";
    if (id == "K") return "A key for each token, with which the queries are compared.";
    if (id == "V") return "A value for each token: what it passes on to those that attend to it.";
    if (id == "scores") return matches(step);
    if (id == "dX" || id == "dg") return sensitive(step);
    return "";
  }

  // One sentence of all rows: `say` returns what is said of one.
  template <class Say>
  std::string of_rows(const ExplainedStep& step, Say&& say) const {
    std::vector<std::string> parts;
    const int64_t rows = step.values.rows, named = std::min(rows, kMostNamed);
    for (int64_t i = 0; i < named; i++) parts.push_back(quoted(step.row_labels[to_size(i)]) + " " + say(i));
    return fmt::format("{}{}.", fmt::join(parts, "; "), rows > named ? fmt::format("; {} more", rows - named) : "");
  }

  // Whether queries and keys come from the same tokens. `step`: of an attention.
  bool is_self_attention(const ExplainedStep& step) const {
    const std::string part = step.id.substr(0, step.id.find_last_of('.') + 1);  // "" without a dot
    const auto source = [&](const char* name) {
      const auto found = steps_.find(part + name);
      const bool is_made = found != steps_.end() && !found->second->origin.terms.empty();
      return is_made ? found->second->origin.terms.front().left : std::string();
    };
    return !source("Q").empty() && source("Q") == source("K");
  }

  // The column as seen from a row: "itself" in self-attention.
  std::string key_of(const ExplainedStep& step, int64_t i, int64_t j) const {
    return i == j && is_self_attention(step) ? "itself" : quoted(step.column_labels[to_size(j)]);
  }

  // The columns of a row with the largest value, and this value: "a" and "b" (0.5 each). `word` follows the columns.
  std::string best_keys(const ExplainedStep& step, int64_t i, const char* word = "") const {
    const std::vector<int64_t> order = columns_by_value(step.values, i);
    const double best = step.values.at(i, order[0]);
    std::vector<std::string> keys;
    for (const int64_t j : order)
      if (step.values.at(i, j) == best) keys.push_back(key_of(step, i, j));
    const std::string named = std::ssize(keys) > kMostNamed ? fmt::format("{} keys", keys.size())
                                                            : fmt::format("{}", fmt::join(keys, " and "));
    return fmt::format("{}{} ({}{})", named, word, number_text(best), keys.size() > 1 ? " each" : "");
  }

  std::string matches(const ExplainedStep& step) const {
    return of_rows(step, [&](int64_t i) {
      const std::vector<int64_t> order = columns_by_value(step.values, i);
      const double best = step.values.at(i, order[0]);
      if (order.size() > 1 && best == step.values.at(i, order.back()))
        return fmt::format("matches all keys equally ({})", number_text(best));
      return "matches " + best_keys(step, i, order.size() > 1 ? " best" : "");
    });
  }

  std::string scaled(const ExplainedStep& step) const {
    const std::optional<NumberSpan> before = span_of(values(step.origin.of[0])), after = span_of(step.values);
    if (before->least == after->least && before->largest == after->largest) return "";
    return fmt::format("Scores {} are now {}.", text_of(*before), text_of(*after));
  }

  static std::string hidden(const NumberTable& S) {
    const auto count = std::ranges::count_if(S.values, [](double s) { return std::isinf(s); });
    return fmt::format("{} of {} scores {} hidden (−∞).", count, S.values.size(), count == 1 ? "is" : "are");
  }

  std::string positive(const ExplainedStep& step) const {
    const NumberTable& E = step.values;
    const auto zeros = std::ranges::count(E.values, 0.0);
    const auto hidden_keys =
        std::ranges::count_if(values(step.origin.of[0]).values, [](double s) { return std::isinf(s); });
    NumberTable seen = {1, 0, {}};
    std::ranges::copy_if(E.values, std::back_inserter(seen.values), [](double e) { return e > 0; });
    const std::optional<NumberSpan> span = span_of(seen);
    if (!span) return "All are 0.";
    return fmt::format("{} positive, {}{}.", zeros > 0 ? "Those that are not 0 are" : "All are", text_of(*span),
                       zeros == 0             ? ""
                       : zeros <= hidden_keys ? "; a hidden key has 0"
                                              : "; the others are hidden or too small for a double");
  }

  std::string attended(const ExplainedStep& step) const {
    return of_rows(step, [&](int64_t i) {
      const std::vector<int64_t> order = columns_by_value(step.values, i);
      const double best = step.values.at(i, order[0]);
      if (best == 0) return std::string("attends to no key");
      if (order.size() > 1 && best - step.values.at(i, order.back()) < 5e-4)
        return fmt::format("attends to all keys equally ({} each)", number_text(best));
      return fmt::format("attends {} to {}", best > 0.5 ? "mostly" : "most", best_keys(step, i));
    });
  }

  // O = A V: the two largest shares of each row, and the rest.
  std::string mixture(const ExplainedStep& step) const {
    const StepTerm& term = step.origin.terms.front();
    const ExplainedStep& A = *steps_.at(term.left);
    return of_rows(A, [&](int64_t i) {
      const std::vector<int64_t> order = columns_by_value(A.values, i);
      std::vector<std::string> parts;
      double rest = 1;
      for (size_t k = 0; k < std::min<size_t>(2, order.size()); k++) {
        const double share = A.values.at(i, order[k]);
        if (share == 0) continue;
        const std::string key = key_of(A, i, order[k]);
        parts.push_back(number_text(share) + (key == "itself" ? " of its own value" : " of the value of " + key));
        rest -= share;
      }
      if (parts.empty()) return std::string("gets nothing");
      if (order.size() > 2 && rest > 5e-4) parts.push_back(number_text(rest) + " of others");
      return fmt::format("gets {}", fmt::join(parts, " + "));
    });
  }

  std::string likely(const ExplainedStep& P) const {
    if (P.column_labels.empty()) return "";
    return of_rows(P, [&](int64_t i) {
      const int64_t best = columns_by_value(P.values, i)[0];
      return fmt::format("is followed most probably by {} ({})", quoted(P.column_labels[to_size(best)]),
                         number_text(P.values.at(i, best)));
    });
  }

  static std::string zeros(const ExplainedStep& step) {
    if (step.origin.activation != Activation::relu) return "";
    return fmt::format("relu makes {} of {} numbers 0.", std::ranges::count(step.values.values, 0.0),
                       step.values.values.size());
  }

  static std::string sensitive(const ExplainedStep& step) {
    int64_t most = 0;
    for (int64_t i = 1; i < step.values.rows; i++)
      if (length_of_row(step.values, i) > length_of_row(step.values, most)) most = i;
    return fmt::format("A change of {} has the largest effect: its gradient has the length {}.",
                       quoted(step.row_labels[to_size(most)]), number_text(length_of_row(step.values, most)));
  }

  static NumberSpan lengths(const NumberTable& A) {
    NumberTable all = {A.rows, 1, {}};
    for (int64_t i = 0; i < A.rows; i++) all.values.push_back(length_of_row(A, i));
    return *span_of(all);
  }

  const std::map<std::string, const ExplainedStep*>& steps_;
};

}  // namespace

void add_findings(Explanation& explanation) {
  const std::map<std::string, const ExplainedStep*> steps = steps_by_id(explanation);
  const FindingText text(steps);
  for (ExplainedSection& section : explanation)
    for (ExplainedStep& step : section.steps) step.note = text.of(step);
}

}  // namespace qkv
