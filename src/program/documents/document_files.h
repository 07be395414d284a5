// Documents in files and folders, translated.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "qkv/documents.h"

namespace qkv {

// Files of a folder and the folders in it, by their paths from there, sorted. Files whose names begin with a dot, and
// links to folders, are left out.
struct FolderDocuments {
  std::vector<std::string> documents;  // of a known format
  std::vector<std::string> others;
};

// Throws Error if the folder cannot be read.
FolderDocuments documents_in(const std::string& folder);

// Sets the languages of "en-de". Throws Error if the text is not two codes.
void set_document_languages(DocumentOptions& options, std::string_view languages);

}  // namespace qkv
