// The file of qkv translate --report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "qkv/jobs.h"
#include "qkv/translator.h"

// The sentences that look untranslated, an object of JSON each: "line" from 1, "source" and "text", and in a document
// its name, "document", and its "text_number" in place of the line. The file is written by commit(); without a path
// there is none.
class UntranslatedReport {
 public:
  // Throws qkv::Error, naming the file, if it cannot be written, as the other functions do.
  explicit UntranslatedReport(const std::string& path);

  // Lets the options report the sentences of lines, or of a document.
  void listen(qkv::TranslateOptions& options, std::string document = "");

  void commit();

 private:
  void add(const std::string& document, int64_t number, const qkv::SentencePair& sentence);

  std::optional<qkv::OutputFile> file_;
};
