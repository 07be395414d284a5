// Records the steps of an explanation, with how each follows from earlier ones.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "program/explain/tables.h"

namespace qkv {

// A matrix in a term of a sum.
struct StepFactor {
  StepFactor() = default;
  StepFactor(const ExplainedStep& of) : step(&of) {}

  const ExplainedStep* step = nullptr;
  bool transposed = false;
};
StepFactor turned(const ExplainedStep& step);

// A step, a product of two, or a row that is added to each row.
struct RecordedTerm {
  RecordedTerm(const ExplainedStep& step) : left(step) {}
  RecordedTerm(StepFactor l, StepFactor r) : left(l), right(r) {}

  StepFactor left, right = {};
  bool repeated = false;
};
using RecordedTerms = std::vector<RecordedTerm>;
RecordedTerm repeated_term(const ExplainedStep& row);

// The product and the row, unless that is null.
RecordedTerms linear_terms(const ExplainedStep& x, const ExplainedStep& W, const ExplainedStep* b);

// The largest number of values in the steps of an explanation, which is about 50 MB as JSON.
constexpr int64_t kMostStepNumbers = 2'000'000;

// References to steps stay valid until take.
class StepRecorder {
 public:
  // The steps that follow are in a section of this title. A section without steps is left out.
  void begin(const std::string& title) { sections_.push_back({title, {}}); }
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }  // of ids

  // Adds a step, whose id gets the prefix. Throws Error for a value that is not finite; −∞ is accepted
  // in a mask and in masked scores. Throws Error beyond kMostStepNumbers.
  const ExplainedStep& add(ExplainedStep step);
  // A matrix of the input, with labels of its rows and columns, which may be empty.
  const ExplainedStep& given(const std::string& id, const std::string& name, const std::vector<std::string>& rows,
                             const NumberTable& values, std::vector<std::string> path,
                             const std::vector<std::string>& columns = {});
  // A sum with the labels of its first term. Without values it is computed.
  const ExplainedStep& sum(const std::string& id, const std::string& name, const RecordedTerms& terms,
                           NumberTable values = {});
  // Σᵢ Aᵢⱼ
  const ExplainedStep& column_sums(const std::string& id, const std::string& name, const ExplainedStep& A);

  Explanation take();

 private:
  struct Section {
    std::string title;
    std::deque<ExplainedStep> steps;
  };

  std::deque<Section> sections_;
  std::string prefix_;
  int64_t numbers_ = 0;
};

// All steps of an input, with tokens as rows. The input has been checked, and has a gradient if `backward` is set.
// Throws Error for a result that is not finite.
Explanation record_steps(const ExplainInput& input, bool backward);

}  // namespace qkv
