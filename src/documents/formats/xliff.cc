// XLIFF 1.0 to 1.2 and 2.0 to 2.2, also SDLXLIFF. The text of each <source> without a translation is translated into a
// <target>: of a <trans-unit>, or a <segment> in version 2. Where a <trans-unit> is divided by <seg-source>, its
// segments are translated apart. These stay: targets with content, units with translate="no" or in such a group,
// approved and final ones, <alt-trans> and notes, and the native code in <bpt>, <ph> and the like.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "documents/bilingual/bilingual_xml.h"
#include "documents/document.h"
#include "documents/languages.h"

namespace qkv {
namespace {

constexpr size_t kNoElement = BilingualXml::kNone;
constexpr std::string_view kXmlSpace = "http://www.w3.org/XML/1998/namespace space";
constexpr std::string_view kItsTranslate = "http://www.w3.org/2005/11/its translate";

bool has_value(const XmlToken& token, std::string_view attribute, std::string_view value) {
  const std::string* found = token.attribute(attribute);
  return found && *found == value;
}

std::string value_of(const XmlToken& token, std::string_view attribute) {
  const std::string* found = token.attribute(attribute);
  return found ? *found : "";
}

InlineMarkup xliff1_markup(const XmlToken& token) {
  using Kind = InlineMarkup::Kind;
  const std::string_view name = token.local();
  if (name == "x" || name == "ph" || name == "it") return {.kind = Kind::code};
  if (name == "bpt" || name == "bx" || name == "ept" || name == "ex") {
    const std::string* pair = token.attribute("rid");
    return {.kind = name[0] == 'b' ? Kind::begin : Kind::end, .pair = pair ? *pair : value_of(token, "id")};
  }
  const bool is_kept =
      name == "mrk" && (has_value(token, "mtype", "protected") || has_value(token, kItsTranslate, "no"));
  return {.kind = is_kept ? Kind::code : Kind::element};
}

InlineMarkup xliff2_markup(const XmlToken& token) {
  using Kind = InlineMarkup::Kind;
  const std::string_view name = token.local();
  const bool keeps_order = has_value(token, "canReorder", "no") || has_value(token, "canReorder", "firstNo");
  const bool is_kept = has_value(token, "translate", "no");
  if (name == "cp" || name == "ph") return {.kind = Kind::code, .keeps_order = keeps_order};
  if (name == "sc" || name == "sm")
    return {Kind::begin, std::string(1, name[1]) + value_of(token, "id"), is_kept, keeps_order};
  if (name == "ec" || name == "em")
    return {Kind::end, std::string(1, name[1]) + value_of(token, "startRef"), false, keeps_order};
  return {.kind = name == "mrk" && is_kept ? Kind::code : Kind::element, .keeps_order = keeps_order};
}

// Attributes that elements within have, unless they say otherwise.
struct XliffScope {
  bool is_translated = true, keeps_space = false;

  XliffScope within(const XmlToken& token) const {
    XliffScope scope = *this;
    if (const std::string* translate = token.attribute("translate")) scope.is_translated = *translate != "no";
    if (const std::string* space = token.attribute(kXmlSpace)) scope.keeps_space = *space == "preserve";
    return scope;
  }
};

class XliffSplitter {
 public:
  XliffSplitter(std::string text, const DocumentOptions& options) : file_(std::move(text), "xliff"), options_(options) {
    const std::string version = value_of(file_.token(file_.root), "version");
    is_version_1_ = version.starts_with("1.");
    if (!is_version_1_ && !version.starts_with("2."))
      fail("XLIFF must have version 1.0 to 1.2 or 2.0 to 2.2 (found \"{}\")", version.substr(0, 32));
    has_state_ = version == "1.1" || version == "1.2";
    has_qualifier_ = version == "1.2";
    rule_ = [this](const XmlToken& token) {
      if (token.space() != file_.token(file_.root).space()) return InlineMarkup{.kind = InlineMarkup::Kind::code};
      return is_version_1_ ? xliff1_markup(token) : xliff2_markup(token);
    };
  }

  void split() {
    std::vector<XliffScope> scopes = {{}};
    for (size_t i = file_.root; i < file_.xml.tokens.size(); i++) {
      const XmlToken& token = file_.token(i);
      if (token.kind == XmlToken::Kind::end) scopes.pop_back();
      if (token.kind != XmlToken::Kind::start) continue;
      const XliffScope scope = scopes.back().within(token);
      if (file_.is(i, is_version_1_ ? "trans-unit" : "segment")) {
        add_unit(i, scope);
        i = token.partner;
        continue;
      }
      if (is_version_1_ ? file_.is(i, "file") : i == file_.root) language_element_ = i;
      scopes.push_back(scope);
    }
  }

  SplitText take() { return std::move(file_.document); }

  // Returns the text with the target language where translations need it; nothing if it is there.
  std::optional<std::string> with_language() const {
    if (unnamed_.empty() || (is_version_1_ && options_.target_language.empty())) return std::nullopt;
    if (options_.target_language.empty())
      fail("the file has no target language (trgLang): target_language must name one, such as de");
    const std::string attribute = fmt::format(" {}=\"{}\"", is_version_1_ ? "target-language" : "trgLang",
                                              checked_target_language(options_.target_language));
    std::string text;
    size_t done = 0;
    for (const size_t element : unnamed_) {
      const size_t end = file_.token(element).end - 1;
      text += file_.document.slice(done, end);
      text += attribute;
      done = end;
    }
    text += file_.document.slice(done, file_.document.bytes.size());
    return text;
  }

 private:
  void add_unit(size_t unit, const XliffScope& scope) {
    if (!scope.is_translated || has_value(file_.token(unit), "approved", "yes") ||
        has_value(file_.token(unit), "state", "final"))
      return;
    const std::vector<size_t> children = file_.children(unit);
    source_ = file_.find(children, "source");
    if (source_ == kNoElement) return;
    target_ = file_.find(children, "target");
    white_space_ = scope.within(file_.token(source_)).keeps_space ? WhiteSpace::keep : WhiteSpace::collapse;
    const size_t divided = is_version_1_ ? file_.find(children, "seg-source") : kNoElement;
    const std::vector<size_t> segments = divided == kNoElement ? std::vector<size_t>() : segments_of(divided);
    if (target_ != kNoElement && !file_.is_blank(target_))
      fill_segments(segments);
    else if (!segments.empty())
      add_target(divided, segments);
    else
      add_target(source_, std::vector{source_});
  }

  // Returns the <mrk mtype="seg"> elements.
  std::vector<size_t> segments_of(size_t element) const {
    std::vector<size_t> segments;
    for (size_t i = element + 1; i < file_.token(element).partner; i++) {
      const XmlToken& token = file_.token(i);
      if (token.kind != XmlToken::Kind::start || !file_.is(i, "mrk") || !has_value(token, "mtype", "seg")) continue;
      segments.push_back(i);
      i = token.partner;
    }
    return segments;
  }

  // Adds a target with the content of the element, in which these segments are translated: a part for each.
  void add_target(size_t element, std::span<const size_t> segments) {
    const bool is_there = target_ != kNoElement;
    if (is_there &&
        (has_value(file_.token(target_), "state", "final") || has_value(file_.token(target_), "state", "signed-off")))
      return;
    const ByteRange place =
        is_there ? file_.whole(target_) : ByteRange{file_.whole(element).end, file_.whole(element).end};
    const ByteRange all = file_.content(element);
    std::vector<TextPart> parts;
    size_t done = all.begin;  // bytes of the element that the parts have
    for (const size_t segment : segments) {
      std::optional<TextPart> part = file_.copied_part(segment, rule_, white_space_);
      if (!part) continue;
      part->before.insert(0, file_.document.slice(done, file_.content(segment).begin));
      done = file_.content(segment).end;
      part->begin = parts.empty() ? place.begin : place.end;
      part->end = place.end;
      parts.push_back(std::move(*part));
    }
    if (parts.empty()) return;
    parts.front().before.insert(0, is_there ? filled_target_tag(element) : new_target_tag(element));
    parts.back().after += file_.document.slice(done, all.end);
    parts.back().after += is_there ? file_.end_tag(target_) : fmt::format("</{}>", new_target_name());
    for (TextPart& part : parts) add(std::move(part));
  }

  // Translates the empty segments of the target.
  void fill_segments(std::span<const size_t> segments) {
    std::unordered_map<std::string, size_t> sources;
    for (const size_t segment : segments) sources.emplace(value_of(file_.token(segment), "mid"), segment);
    if (sources.empty()) return;
    for (const size_t segment : segments_of(target_)) {
      const auto source = sources.find(value_of(file_.token(segment), "mid"));
      if (source == sources.end() || !file_.is_blank(segment)) continue;
      std::optional<TextPart> part = file_.copied_part(source->second, rule_, white_space_);
      sources.erase(source);
      if (!part) continue;
      const ByteRange place = file_.whole(segment);
      part->begin = place.begin, part->end = place.end;
      part->before.insert(0, file_.opened_tag(segment) + ">");
      part->after += file_.end_tag(segment);
      add(std::move(*part));
    }
  }

  void add(TextPart part) {
    const std::string* named = file_.token(language_element_).attribute(is_version_1_ ? "target-language" : "trgLang");
    const bool has_language = named != nullptr;
    if (has_language && !options_.target_language.empty() && !is_related_language(*named, options_.target_language))
      fail("the target language of the file is {} (asked for {})", named->substr(0, 32), options_.target_language);
    if (!has_language && (unnamed_.empty() || unnamed_.back() != language_element_))
      unnamed_.push_back(language_element_);
    file_.document.parts.push_back(std::move(part));
  }

  // Marks what is translated as such, as far as the version can: version 2 has the state at the <segment>.
  std::string state() const {
    return fmt::format("{}{}>", has_state_ ? " state=\"needs-review-translation\"" : "",
                       has_qualifier_ ? " state-qualifier=\"mt-suggestion\"" : "");
  }

  // element: that the content of the target is copied from.
  std::string filled_target_tag(size_t element) const {
    static constexpr std::string_view kState[] = {"state", "state-qualifier"};
    return file_.opened_tag(target_, has_state_ ? std::span(kState) : std::span<const std::string_view>()) +
           file_.copied_attributes(element, target_) + state();
  }

  std::string new_target_tag(size_t element) const {
    return fmt::format("{}<{}{}{}", file_.indentation(source_), new_target_name(), file_.copied_attributes(element),
                       state());
  }

  // The name with the prefix of the source's.
  std::string new_target_name() const {
    const std::string_view source = file_.written_name(source_);
    return std::string(source.substr(0, source.rfind(':') + 1)) + "target";
  }

  BilingualXml file_;
  const DocumentOptions& options_;
  bool is_version_1_ = false, has_state_ = false, has_qualifier_ = false;
  InlineMarkupRule rule_;
  size_t language_element_ = 0;                       // that names the target language
  std::vector<size_t> unnamed_;                       // such elements that have parts, and do not name it
  size_t source_ = kNoElement, target_ = kNoElement;  // of the unit
  WhiteSpace white_space_ = WhiteSpace::collapse;
};

SplitText split_xliff(std::string text, const DocumentOptions& options) {
  XliffSplitter splitter(std::move(text), options);
  splitter.split();
  std::optional<std::string> with_language = splitter.with_language();
  if (!with_language) return splitter.take();
  XliffSplitter again(std::move(*with_language), options);
  again.split();
  return again.take();
}

}  // namespace

namespace document_formats {

const DocumentFormat& xliff() {
  static const DocumentFormat format = {
      "xliff", "XLIFF files of translators", {".xlf", ".xliff", ".sdlxliff"}, split_xliff};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
