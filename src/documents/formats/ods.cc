// Spreadsheets (OpenDocument): see documents/office/open_document.h for what stays.
#include "documents/document.h"
#include "documents/office/open_document.h"

namespace qkv {

namespace document_formats {

const DocumentFormat& ods() {
  static const DocumentFormat format = {
      "ods", "Spreadsheets (OpenDocument)", {".ods", ".ots"}, nullptr, open_document_member};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
