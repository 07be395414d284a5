// The options of qkv translate for documents, and their translation.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "parts.h"
#include "qkv/documents.h"
#include "untranslated_report.h"

struct DocumentsOptions {
  std::string path;
  qkv::DocumentOptions document;
  const CLI::Option* path_option = nullptr;

  bool given() const { return path_option->count() > 0; }
};

// Adds the options. --out is that of the parts, which needs either --in or --document. `others`: the options of lines
// and of their output, which --document excludes.
void add_documents_options(CLI::App& command, DocumentsOptions& options, const std::vector<std::string>& others);

// Translates a document, or those of a folder, into `out`. translate: the options of each model of the chain. If
// documents of a folder fail, the others are translated and qkv::Error is thrown at the end. Throws Interrupted after
// Ctrl-C. The report is written but for Interrupted.
void translate_documents(const qkv::PivotTranslator& translator, const DocumentsOptions& options,
                         const std::string& out, std::vector<qkv::TranslateOptions> translate,
                         UntranslatedReport& report);
