#include <utility>

#include "core/fail.h"
#include "documents/document.h"
#include "qkv/documents.h"

namespace qkv {

std::vector<DocumentInfo> known_document_formats() {
  std::vector<DocumentInfo> formats;
  for (const DocumentFormat* format : all_document_formats())
    formats.push_back({std::string(format->name), std::string(format->description),
                       {format->extensions.begin(), format->extensions.end()}});
  return formats;
}

TranslatedDocument translate_document(const Translator& translator, std::string_view name, std::string bytes,
                                      const TranslateOptions& options, const DocumentOptions& document_options) {
  const DocumentFormat& format = document_format(name, document_options);
  try {
    const Document document(format, std::move(bytes), document_options);
    TranslateOptions with_alignment = options;
    with_alignment.alignment = document.has_tags();
    const std::vector<Translation> translations = translator.translate(document.part_texts(), with_alignment);
    return {document.translated(translations), static_cast<int64_t>(document.parts())};
  } catch (const Error& error) {
    fail("{}: {}", name, error.what());
  }
}

}  // namespace qkv
