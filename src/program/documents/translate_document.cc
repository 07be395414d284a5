#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "documents/document.h"
#include "io/atomic_file.h"
#include "qkv/documents.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kMostDocumentBytes = size_t{1} << 30;

// A translator or a chain, with its options, one entry for each model.
struct TextTranslator {
  std::function<std::vector<Translation>(const std::vector<std::string>&, const std::vector<TranslateOptions>&)>
      translate;
  std::vector<TranslateOptions> options;
};

TextTranslator text_translator(const Translator& translator, const TranslateOptions& options) {
  return {[&](const auto& texts, const auto& given) { return translator.translate(texts, given.front()); }, {options}};
}

TextTranslator text_translator(const PivotTranslator& chain, std::vector<TranslateOptions> options) {
  if (options.empty()) options.resize(chain.translators().size());
  return {[&](const auto& texts, const auto& given) { return chain.translate(texts, given); }, std::move(options)};
}

TranslatedDocument translate(const TextTranslator& translator, std::string_view name, std::string bytes,
                             const DocumentOptions& document_options) {
  const DocumentFormat& format = document_format(name, document_options);
  const bool has_columns = format.name == "csv" || format.name == "tsv";
  if (!document_options.columns.empty() && !has_columns)
    fail("{}: columns require a CSV or TSV document (is {})", in_one_line(name), format.name);
  translator.translate({}, translator.options);  // checks the options
  try {
    DocumentOptions with_languages = document_options;
    if (with_languages.source_language.empty())
      with_languages.source_language = translator.options.front().source_language;
    if (with_languages.target_language.empty())
      with_languages.target_language = translator.options.back().target_language;
    const Document document(format, std::move(bytes), with_languages);
    std::vector<TranslateOptions> best = translator.options;
    best.back().n_best = 1;
    best.back().alignment = document.has_tags();
    const std::vector<Translation> translations = translator.translate(document.part_texts(), best);
    return {document.translated(translations), static_cast<int64_t>(document.parts())};
  } catch (const Error& error) {
    fail("{}: {}", in_one_line(name), error.what());
  }
}

int64_t translate_file(const TextTranslator& translator, const std::string& path, const std::string& out,
                       const DocumentOptions& document) {
  document_format(path, document);
  std::error_code error;
  if (std::filesystem::equivalent(path, out, error))
    fail("{}: is the document itself; its translation requires another name", in_one_line(out));
  if (std::filesystem::is_directory(out, error)) fail("{}: is a folder", in_one_line(out));
  std::string bytes = read_file(path, kMostDocumentBytes, Accepts::pipe);
  AtomicFile file(out);  // before the work is done
  const TranslatedDocument translated = translate(translator, path, std::move(bytes), document);
  file.write(translated.bytes);
  file.commit();
  return translated.parts;
}

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
                                      const TranslateOptions& options, const DocumentOptions& document) {
  return translate(text_translator(translator, options), name, std::move(bytes), document);
}

TranslatedDocument translate_document(const PivotTranslator& chain, std::string_view name, std::string bytes,
                                      const std::vector<TranslateOptions>& options, const DocumentOptions& document) {
  return translate(text_translator(chain, options), name, std::move(bytes), document);
}

int64_t translate_document_file(const Translator& translator, const std::string& path, const std::string& out,
                                const TranslateOptions& options, const DocumentOptions& document) {
  return translate_file(text_translator(translator, options), path, out, document);
}

int64_t translate_document_file(const PivotTranslator& chain, const std::string& path, const std::string& out,
                                const std::vector<TranslateOptions>& options, const DocumentOptions& document) {
  return translate_file(text_translator(chain, options), path, out, document);
}

}  // namespace qkv
