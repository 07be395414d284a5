// Tab-separated values: see delimited_text.h.
#include <utility>

#include "documents/document.h"
#include "documents/strings/delimited_text.h"

namespace qkv {

namespace document_formats {

const DocumentFormat& tsv() {
  static const DocumentFormat format = {
      "tsv", "Tab-separated values", {".tsv"}, [](std::string text, const DocumentOptions& options) {
        return split_tsv(std::move(text), options);
      }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
