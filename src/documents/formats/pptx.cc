// PowerPoint presentations. The paragraphs of slides, speaker notes, tables and diagrams are translated. Fields,
// charts, layouts and document properties stay.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "documents/document.h"
#include "documents/office/office_runs.h"

namespace qkv {
namespace {

SplitText split_slide(std::string xml, const DocumentOptions&) { return split_drawing_text(std::move(xml)); }

SplitFunction slide_member(std::string_view name) {
  constexpr std::string_view kStems[] = {"ppt/slides/slide", "ppt/notesSlides/notesSlide", "ppt/diagrams/data",
                                         "ppt/diagrams/drawing"};
  const bool is_slide = std::ranges::any_of(kStems, [&](auto stem) { return is_numbered_member(name, stem); });
  return is_slide ? split_slide : nullptr;
}

}  // namespace

namespace document_formats {

const DocumentFormat& pptx() {
  static const DocumentFormat format = {
      "pptx", "PowerPoint presentations", {".pptx", ".pptm", ".potx", ".ppsx"}, nullptr, slide_member};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
