// The steps of an explanation as JSON.
#include <nlohmann/json.hpp>

#include "program/explain/table_json.h"

namespace qkv {

std::string explanation_to_json(const Explanation& explanation) {
  nlohmann::ordered_json sections = nlohmann::ordered_json::array();
  for (const ExplainedSection& section : explanation) {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const ExplainedStep& step : section.steps) {
      steps.push_back({{"id", step.id},
                       {"name", step.name},
                       {"formula", step.formula},
                       {"rows", step.row_labels},
                       {"columns", step.column_labels},
                       {"values", table_to_json(step.values)}});
      if (!step.note.empty()) steps.back()["note"] = step.note;
    }
    sections.push_back({{"title", section.title}, {"steps", std::move(steps)}});
  }
  const nlohmann::ordered_json json = {{"sections", std::move(sections)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace qkv
