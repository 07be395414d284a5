// Presentations (OpenDocument): see documents/office/open_document.h for what stays.
#include "documents/document.h"
#include "documents/office/open_document.h"

namespace qkv {

namespace document_formats {

const DocumentFormat& odp() {
  static const DocumentFormat format = {
      "odp", "Presentations (OpenDocument)", {".odp", ".otp"}, nullptr, open_document_member};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
