// Documents whose parts are strings: what is translated, and what is written for given translations.
#pragma once

#include <string>
#include <vector>

#include "documents/document.h"
#include "qkv/error.h"

namespace qkv::testing {

struct StringDocument {
  StringDocument(std::string_view format, std::string text, std::vector<std::string> columns = {})
      : document(*find_document_format(format), std::move(text), {.format = "", .columns = std::move(columns)}) {}

  std::vector<std::string> parts() const { return document.part_texts(); }

  // The document with these translations of its parts.
  std::string with(const std::vector<std::string>& texts) const {
    std::vector<Translation> translations(texts.size());
    for (size_t i = 0; i < texts.size(); i++) translations[i].hypotheses.emplace_back().text = texts[i];
    return document.translated(translations);
  }

  // The document with each part in angle quotes, which no format spells in another way.
  std::string marked() const {
    std::vector<std::string> texts;
    for (const std::string& part : parts()) texts.push_back("«" + part + "»");
    return with(texts);
  }

  Document document;
};

// The error of a text that does not have the format; "" if there is none.
inline std::string error_of(std::string_view format, const std::string& text, std::vector<std::string> columns = {}) {
  try {
    StringDocument(format, text, std::move(columns));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace qkv::testing
