// WebVTT subtitles: notes, styles and the names of cues stay.
#include <utility>

#include "documents/document.h"
#include "documents/subtitles.h"

namespace qkv {

namespace document_formats {

const DocumentFormat& vtt() {
  static const DocumentFormat format = {"vtt", "WebVTT subtitles", {".vtt"}, [](std::string text, const auto&) {
                                          return split_subtitles(std::move(text), kHtmlSpelling);
                                        }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
