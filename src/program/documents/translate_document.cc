#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "documents/document.h"
#include "io/atomic_file.h"
#include "qkv/documents.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kMostDocumentBytes = size_t{1} << 30;

}  // namespace

std::vector<DocumentInfo> known_document_formats() {
  std::vector<DocumentInfo> formats;
  for (const DocumentFormat* format : all_document_formats())
    formats.push_back({std::string(format->name),
                       std::string(format->description),
                       {format->extensions.begin(), format->extensions.end()}});
  return formats;
}

TranslatedDocument translate_document(const Translator& translator, std::string_view name, std::string bytes,
                                      const TranslateOptions& options, const DocumentOptions& document_options) {
  const DocumentFormat& format = document_format(name, document_options);
  const bool has_columns = format.name == "csv" || format.name == "tsv";
  if (!document_options.columns.empty() && !has_columns)
    fail("{}: columns require a CSV or TSV document (is {})", in_one_line(name), format.name);
  translator.translate(std::vector<std::string>(), options);  // checks the options
  try {
    DocumentOptions with_languages = document_options;
    if (with_languages.source_language.empty()) with_languages.source_language = options.source_language;
    if (with_languages.target_language.empty()) with_languages.target_language = options.target_language;
    const Document document(format, std::move(bytes), with_languages);
    TranslateOptions best = options;
    best.n_best = 1;
    best.alignment = document.has_tags();
    const std::vector<Translation> translations = translator.translate(document.part_texts(), best);
    return {document.translated(translations), static_cast<int64_t>(document.parts())};
  } catch (const Error& error) {
    fail("{}: {}", in_one_line(name), error.what());
  }
}

int64_t translate_document_file(const Translator& translator, const std::string& path, const std::string& out,
                                const TranslateOptions& options, const DocumentOptions& document) {
  document_format(path, document);
  std::error_code error;
  if (std::filesystem::equivalent(path, out, error))
    fail("{}: is the document itself; its translation requires another name", in_one_line(out));
  if (std::filesystem::is_directory(out, error)) fail("{}: is a folder", in_one_line(out));
  std::string bytes = read_file(path, kMostDocumentBytes, Accepts::pipe);
  AtomicFile file(out);  // before the work is done
  const TranslatedDocument translated = translate_document(translator, path, std::move(bytes), options, document);
  file.write(translated.bytes);
  file.commit();
  return translated.parts;
}

}  // namespace qkv
