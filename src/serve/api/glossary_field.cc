#include "serve/api/glossary_field.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

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

}  // namespace

std::string glossary_of(RequestObject& object, std::string otherwise) {
  const nlohmann::json& value = object.get(kGlossary);
  if (value.is_null()) return otherwise;
  std::vector<std::pair<std::string, std::string>> entries;
  if (value.is_object()) {
    for (const auto& [term, targets] : value.items()) {
      if (!targets.is_array()) entries.emplace_back(term, term_of(targets));
      for (const nlohmann::json& target : targets.is_array() ? targets : nlohmann::json::array())
        entries.emplace_back(term, term_of(target));
    }
  } else if (value.is_array()) {
    for (const nlohmann::json& pair : value) {
      if (!pair.is_array() || pair.size() != 2)
        refuse_field(kGlossary, "must have pairs of a term and its translation (entry {} is none)", entries.size() + 1);
      entries.emplace_back(term_of(pair[0]), term_of(pair[1]));
    }
  } else {
    return term_of(value);
  }
  return glossary_text(entries);
}

}  // namespace qkv
