#include "serve/api/glossary_field.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "qkv/error.h"
#include "qkv/translator.h"
#include "serve/http/http_reply.h"

namespace qkv {
namespace {

constexpr const char* kGlossary = "glossary";

std::string term_of(const nlohmann::json& value) {
  if (!value.is_string())
    refuse_field(kGlossary,
                 "must be a string, an object of terms and their translations, or a list of pairs of strings (has {})",
                 value.type_name());
  return value.get<std::string>();
}

// Returns the lines of a term of an object, whose order is lost: errors name the term.
std::string lines_of(const std::string& term, const nlohmann::json& targets) {
  if (!targets.is_array()) return lines_of(term, nlohmann::json::array({targets}));
  if (targets.empty()) refuse_field(kGlossary, "must have a translation of {} (has none)", excerpt(term));
  std::string lines;
  for (const nlohmann::json& item : targets) {
    const std::string target = term_of(item);
    try {
      lines += glossary_text({{term, target}});
    } catch (const Error&) {
      refuse_field(kGlossary, "must have text without tabs and line ends as terms and translations (has {}: {})",
                   excerpt(term), excerpt(target));
    }
  }
  return lines;
}

// Returns the lines of a list of pairs.
std::string lines_of(const nlohmann::json& pairs) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const nlohmann::json& pair : pairs) {
    if (!pair.is_array() || pair.size() != 2)
      refuse_field(kGlossary, "must have pairs of a term and its translation (entry {} is none)", entries.size() + 1);
    entries.emplace_back(term_of(pair[0]), term_of(pair[1]));
  }
  return glossary_text(entries);
}

}  // namespace

std::string glossary_of(RequestObject& object, std::string otherwise) {
  const nlohmann::json& value = object.get(kGlossary);
  if (value.is_null()) return otherwise;
  if (value.is_array()) return lines_of(value);
  if (!value.is_object()) return term_of(value);
  std::string lines;
  for (const auto& [term, targets] : value.items()) lines += lines_of(term, targets);
  return lines;
}

}  // namespace qkv
