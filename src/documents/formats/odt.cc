// Text documents (OpenDocument): see documents/office/open_document.h for what stays.
#include "documents/document.h"
#include "documents/office/open_document.h"

namespace qkv {

namespace document_formats {

const DocumentFormat& odt() {
  static const DocumentFormat format = {
      "odt", "Text documents (OpenDocument)", {".odt", ".ott"}, nullptr, open_document_member};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
