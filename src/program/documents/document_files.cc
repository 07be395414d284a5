#include "program/documents/document_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/fail.h"
#include "documents/document.h"
#include "documents/languages.h"
#include "text/visible.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

}  // namespace

FolderDocuments documents_in(const std::string& folder) {
  FolderDocuments found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (std::error_code unreadable; !entry->is_directory(unreadable)) {
      auto& files = format_of_file(name) ? found.documents : found.others;
      files.push_back(entry->path().lexically_relative(folder).string());
    }
  }
  if (error) fail("{}: folder cannot be read: {}", in_one_line(folder), error.message());
  std::ranges::sort(found.documents);
  std::ranges::sort(found.others);
  return found;
}

void set_document_languages(DocumentOptions& options, std::string_view languages) {
  const auto pair = parse_language_pair(languages);
  if (!pair) fail("languages of a document must be two codes, such as en-de (is {})", in_one_line(languages));
  options.source_language = pair->source;
  options.target_language = pair->target;
}

}  // namespace qkv
