// Translation of documents: text, web pages, subtitles, office documents, books, and the files of translators. The text
// in them is translated, and every other byte stays. docs/documents.md lists the formats.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/pivot.h"
#include "qkv/translator.h"

namespace [[gnu::visibility("default")]] qkv {

struct DocumentOptions {
  std::string format = "";  // such as "docx"; "": by the extension of the file
  // Codes such as "de" or "pt-BR", for formats that name languages: TMX, and XLIFF files without a target language; "":
  // those of TranslateOptions, or else those that the file names.
  std::string source_language = "", target_language = "";
  // Those of a CSV file, by the name in its first line or the number from 1; none: all.
  std::vector<std::string> columns = {};
  int64_t most_bytes = int64_t{256} << 20;  // that the text of an archive may have, decompressed
};

struct DocumentInfo {
  std::string format;       // its name
  std::string description;  // of its files
  std::vector<std::string> extensions;
};

// Returns all formats, by name.
std::vector<DocumentInfo> known_document_formats();

struct TranslatedDocument {
  std::string bytes;
  int64_t parts = 0;  // texts that were translated: paragraphs, cells, entries
};

// Returns a document with its text translated. `name` is the file's name, whose extension says the format unless the
// options do. Inline markup moves with its words, by the alignment. Throws Error for an unknown format, and for bytes
// that do not have the format.
TranslatedDocument translate_document(const Translator& translator, std::string_view name, std::string bytes,
                                      const TranslateOptions& options = {}, const DocumentOptions& document = {});
// By a chain of models: `options` has one entry for each, or none.
TranslatedDocument translate_document(const PivotTranslator& chain, std::string_view name, std::string bytes,
                                      const std::vector<TranslateOptions>& options = {},
                                      const DocumentOptions& document = {});

// Translates the document in a file, and writes `out` when it is complete: the file of that name is replaced, or stays
// as it was. Returns the number of texts that were translated. Throws Error, naming the file, as above, and if `out` is
// the document itself.
int64_t translate_document_file(const Translator& translator, const std::string& path, const std::string& out,
                                const TranslateOptions& options = {}, const DocumentOptions& document = {});
int64_t translate_document_file(const PivotTranslator& chain, const std::string& path, const std::string& out,
                                const std::vector<TranslateOptions>& options = {},
                                const DocumentOptions& document = {});

}  // namespace qkv
