#include "program/explain/recorder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/fail.h"
#include "program/explain/forms.h"

namespace qkv {
namespace {

using Labels = std::vector<std::string>;

const Labels& row_labels(const StepFactor& f) { return f.transposed ? f.step->column_labels : f.step->row_labels; }
const Labels& column_labels(const StepFactor& f) { return f.transposed ? f.step->row_labels : f.step->column_labels; }

NumberTable value_of(const StepFactor& f) { return f.transposed ? transposed(f.step->values) : f.step->values; }

NumberTable value_of(const RecordedTerm& term, int64_t rows) {
  if (term.repeated) return repeated(term.left.step->values, rows);
  if (!term.right.step) return value_of(term.left);
  return term.right.transposed ? product_with_transposed(value_of(term.left), term.right.step->values)
                               : product(value_of(term.left), term.right.step->values);
}

NumberTable value_of(const RecordedTerms& terms) {
  NumberTable total = value_of(terms.front(), 0);
  for (size_t i = 1; i < terms.size(); i++) total = sum(total, value_of(terms[i], total.rows));
  return total;
}

// Whether −∞ is a value of the step: in a mask, and in the scores that it hides.
bool may_hide(const StepOrigin& origin) {
  return origin.kind == StepKind::masked || (!origin.path.empty() && origin.path.back() == "mask");
}

}  // namespace

StepFactor turned(const ExplainedStep& step) {
  StepFactor factor = step;
  factor.transposed = true;
  return factor;
}

RecordedTerm repeated_term(const ExplainedStep& row) {
  RecordedTerm term = row;
  term.repeated = true;
  return term;
}

RecordedTerms linear_terms(const ExplainedStep& x, const ExplainedStep& W, const ExplainedStep* b) {
  RecordedTerms terms = {{x, W}};
  if (b) terms.push_back(repeated_term(*b));
  return terms;
}

const ExplainedStep& StepRecorder::add(ExplainedStep step) {
  step.id = prefix_ + step.id;
  const bool hides = may_hide(step.origin);
  const auto wrong = [hides](double value) { return !std::isfinite(value) && !(hides && value < 0); };
  if (std::ranges::any_of(step.values.values, wrong))
    fail("explain: {} is not finite: the numbers given are too large", step.name);
  numbers_ += std::ssize(step.values.values);
  if (numbers_ > kMostStepNumbers)
    fail("explain: the steps have more than {} numbers: give smaller matrices or fewer heads", kMostStepNumbers);
  return sections_.back().steps.emplace_back(std::move(step));
}

const ExplainedStep& StepRecorder::given(const std::string& id, const std::string& name, const Labels& rows,
                                         const NumberTable& values, std::vector<std::string> path,
                                         const Labels& columns) {
  ExplainedStep step{id, name, "", rows, columns, values};
  step.origin.kind = StepKind::given;
  step.origin.path = std::move(path);
  return add(std::move(step));
}

const ExplainedStep& StepRecorder::sum(const std::string& id, const std::string& name, const RecordedTerms& terms,
                                       NumberTable values) {
  const RecordedTerm& first = terms.front();
  const StepFactor last = first.right.step ? first.right : first.left;
  ExplainedStep step{id, name, "", row_labels(first.left), column_labels(last), std::move(values)};
  step.origin.kind = StepKind::sum;
  std::vector<NamedTerm> named;
  for (const RecordedTerm& term : terms) {
    const ExplainedStep* right = term.right.step;
    const StepTerm ids = {term.left.step->id, right ? right->id : "", term.left.transposed, term.right.transposed,
                          term.repeated};
    named.push_back({ids, term.left.step->name, right ? right->name : ""});
    step.origin.terms.push_back(ids);
  }
  step.formula = sum_formula(named);
  if (step.values.empty()) step.values = value_of(terms);
  return add(std::move(step));
}

const ExplainedStep& StepRecorder::column_sums(const std::string& id, const std::string& name, const ExplainedStep& A) {
  ExplainedStep step{id, name, "Σᵢ " + A.name, {}, A.column_labels, column_sums_of(A.values)};
  step.origin = {StepKind::column_sums, {A.id}};
  return add(std::move(step));
}

Explanation StepRecorder::take() {
  Explanation explanation;
  for (Section& section : std::exchange(sections_, {})) {
    if (section.steps.empty()) continue;
    explanation.push_back({section.title, {}});
    std::ranges::move(section.steps, std::back_inserter(explanation.back().steps));
  }
  return explanation;
}

}  // namespace qkv
