// Documents in all formats that qkv translates. A format is one file in src/documents/formats, which says where the
// text is; docs/documents.md lists them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "documents/document_encoding.h"
#include "documents/split_text.h"
#include "qkv/documents.h"

namespace qkv {

// Finds the parts of a text. The text is valid UTF-8. Throws Error if it does not have the format.
using SplitFunction = SplitText (*)(std::string text, const DocumentOptions& options);

struct DocumentFormat {
  std::string_view name;                     // "docx"
  std::string_view description;              // "Word documents"
  std::vector<std::string_view> extensions;  // ".docx", in lower case; the first is the usual one
  SplitFunction split = nullptr;             // of a text
  // For a zip archive: returns what splits the member of this name, or nullptr for a member that stays as it is.
  SplitFunction (*split_member)(std::string_view name) = nullptr;
  // For a zip archive: removes the parts that must stay because other members repeat their text. Texts and names of
  // members have the same order.
  void (*remove_parts)(std::span<const std::string> names, std::span<SplitText> texts) = nullptr;
};

// All formats, by name. The list is made by the build.
std::span<const DocumentFormat* const> all_document_formats();

// Returns the format of this name, or of a file with this name, by its extension in any case; nullptr if there is none.
const DocumentFormat* find_document_format(std::string_view name);
const DocumentFormat* format_of_file(std::string_view file_name);

// Returns the format that the options name, or that of the file. Throws Error if there is none.
const DocumentFormat& document_format(std::string_view file_name, const DocumentOptions& options);

class Document {
 public:
  // Throws Error if the bytes do not have the format. Takes time and memory linear in the size of the text in it.
  Document(const DocumentFormat& format, std::string bytes, const DocumentOptions& options = {});

  // The texts with their parts: one, or those of an archive's members.
  const std::vector<SplitText>& texts() const { return texts_; }
  size_t parts() const;
  // The texts to translate, one for each part.
  std::vector<std::string> part_texts() const;
  // Whether a part has tags, which are placed by the alignment.
  bool has_tags() const;

  // Returns the document with its parts replaced, one replacement for each, in the order of texts and parts.
  std::string replaced(std::span<const std::string> replacements) const;

  // Returns the document with its parts translated, one translation for each, by the hypotheses of this rank, or the
  // last ones where there are fewer.
  std::string translated(std::span<const Translation> translations, size_t hypothesis = 0) const;

 private:
  std::vector<SplitText> texts_;
  std::vector<std::string> members_;  // of an archive, one for each text
  std::string archive_;
  bool is_archive_ = false;
  TextEncoding encoding_ = TextEncoding::utf8;
};

}  // namespace qkv
