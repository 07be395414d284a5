// Comma-separated values: see delimited_text.h.
#include <utility>

#include "documents/document.h"
#include "documents/strings/delimited_text.h"

namespace qkv {

namespace document_formats {

const DocumentFormat& csv() {
  static const DocumentFormat format = {
      "csv", "Comma-separated values", {".csv"}, [](std::string text, const DocumentOptions& options) {
        return split_csv(std::move(text), options);
      }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
