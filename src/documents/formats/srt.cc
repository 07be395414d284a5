// SubRip subtitles: a number, a line with two times, lines of text, and an empty line.
#include <utility>

#include "documents/document.h"
#include "documents/subtitles.h"

namespace qkv {

namespace document_formats {

const DocumentFormat& srt() {
  static const DocumentFormat format = {"srt", "SubRip subtitles", {".srt"}, [](std::string text, const auto&) {
                                          return split_subtitles(std::move(text), kPlainSpelling);
                                        }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
