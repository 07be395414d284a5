// Translation memories in TMX. Units that have the source language but not the target language get a <tuv> in it, and
// an empty <seg> of it is filled. Languages are those of the options; otherwise the header's srclang, and the only
// other language in the file. All other units and languages stay, as does the native code in <bpt>, <ph> and the like.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "documents/bilingual/bilingual_xml.h"
#include "documents/document.h"
#include "documents/languages.h"

namespace qkv {
namespace {

constexpr size_t kNoTmxElement = BilingualXml::kNone;
constexpr std::string_view kXmlLang = "http://www.w3.org/XML/1998/namespace lang";

// A <tuv>: the text of a unit in one language.
struct TmxText {
  size_t element, seg;
  std::string language;  // as it is written
};

struct TmxUnit {
  std::string source_language;
  std::vector<TmxText> texts;
};

// Returns the text in this language, or else in a related one; nullptr if there is none. except: another text.
const TmxText* find_language(const TmxUnit& unit, std::string_view language, const TmxText* except = nullptr) {
  const TmxText* related = nullptr;
  for (const TmxText& text : unit.texts) {
    if (&text == except) continue;
    if (folded_language(text.language) == folded_language(language)) return &text;
    if (!related && is_related_language(text.language, language)) related = &text;
  }
  return related;
}

InlineMarkup tmx_markup(const XmlToken& token) {
  using Kind = InlineMarkup::Kind;
  const std::string_view name = token.local();
  const std::string* pair = token.attribute("i");
  if (name == "bpt" || name == "ept")
    return {.kind = name == "bpt" ? Kind::begin : Kind::end, .pair = pair ? *pair : ""};
  return {.kind = name == "ph" || name == "it" || name == "ut" ? Kind::code : Kind::element};
}

class TmxSplitter {
 public:
  TmxSplitter(std::string text, const DocumentOptions& options) : file_(std::move(text), "tmx"), options_(options) {}

  SplitText split() {
    read_units();
    if (!units_.empty()) find_target_language();
    for (const TmxUnit& unit : units_) add_part_of(unit);
    return std::move(file_.document);
  }

 private:
  void read_units() {
    std::string source_language = options_.source_language;
    for (size_t i = file_.root; i < file_.xml.tokens.size(); i++) {
      if (file_.token(i).kind != XmlToken::Kind::start) continue;
      const std::string* language = file_.token(i).attribute("srclang");
      if (file_.is(i, "header") && language && options_.source_language.empty()) source_language = *language;
      if (!file_.is(i, "tu")) continue;
      TmxUnit unit = {source_language, {}};
      if (language && *language != "*all*" && options_.source_language.empty()) unit.source_language = *language;
      if (unit.source_language.empty() || unit.source_language == "*all*")
        fail("the memory has no source language (srclang is \"{}\"): source_language must name one, such as en",
             unit.source_language);
      read_texts(i, unit);
      if (find_language(unit, unit.source_language)) units_.push_back(std::move(unit));
      i = file_.token(i).partner;
    }
  }

  void read_texts(size_t element, TmxUnit& unit) const {
    for (const size_t child : file_.children(element)) {
      if (!file_.is(child, "tuv")) continue;
      const std::string* language = file_.token(child).attribute(kXmlLang);
      if (!language) language = file_.token(child).attribute("lang");
      const size_t seg = file_.find(file_.children(child), "seg");
      if (language && seg != kNoTmxElement) unit.texts.push_back({child, seg, *language});
    }
  }

  // Sets the target language as the file writes it.
  void find_target_language() {
    std::set<std::string> others;  // languages besides the source
    for (const TmxUnit& unit : units_) {
      const TmxText* source = find_language(unit, unit.source_language);
      for (const TmxText& text : unit.texts)
        if (&text != source && !is_related_language(text.language, source->language)) others.insert(text.language);
    }
    if (!options_.target_language.empty()) {
      target_language_ = checked_target_language(options_.target_language);
      const auto is_same = [&](const std::string& other) {
        return folded_language(other) == folded_language(target_language_);
      };
      const auto is_related = [&](const std::string& other) { return is_related_language(other, target_language_); };
      auto found = std::ranges::find_if(others, is_same);
      if (found == others.end()) found = std::ranges::find_if(others, is_related);
      if (found != others.end()) target_language_ = *found;
      return;
    }
    if (others.size() == 1) {
      target_language_ = *others.begin();
      return;
    }
    std::string found;
    for (const std::string& other : others)
      if (found.size() < 80) found += (found.empty() ? "" : ", ") + other.substr(0, 32);
    fail("the memory has {} languages besides the source{}: target_language must name one, such as de", others.size(),
         found.empty() ? "" : " (" + found + ")");
  }

  void add_part_of(const TmxUnit& unit) {
    const TmxText* source = find_language(unit, unit.source_language);
    const TmxText* target = find_language(unit, target_language_, source);
    if (target && !file_.is_blank(target->seg)) return;
    // The line ends of a segment are a part of it: TMX has no white space that is only layout.
    std::optional<TextPart> part = file_.copied_part(source->seg, tmx_markup, WhiteSpace::keep);
    if (!part) return;
    if (target) {
      const ByteRange place = file_.whole(target->seg);
      part->begin = place.begin, part->end = place.end;
      part->before.insert(0, file_.opened_tag(target->seg) + ">");
      part->after += file_.end_tag(target->seg);
    } else {
      part->begin = part->end = file_.whole(unit.texts.back().element).end;
      part->before.insert(0, new_text_begin(*source));
      part->after += new_text_end(*source);
    }
    file_.document.parts.push_back(std::move(*part));
  }

  // A <tuv> that is laid out like that of the source.
  std::string new_text_begin(const TmxText& source) const {
    const bool has_prefix = file_.token(source.element).attribute(kXmlLang) != nullptr;
    return fmt::format("{}<{} {}=\"{}\">{}{}>", file_.indentation(source.element), file_.written_name(source.element),
                       has_prefix ? "xml:lang" : "lang", target_language_, file_.indentation(source.seg),
                       file_.opened_tag(source.seg));
  }

  std::string new_text_end(const TmxText& source) const {
    const size_t seg_end = file_.whole(source.seg).end, end = file_.content(source.element).end;
    const std::string_view behind = file_.document.slice(seg_end, end);
    const bool is_layout = behind.find_first_not_of(" \t\r\n") == behind.npos;
    return fmt::format("{}{}{}", file_.end_tag(source.seg), is_layout ? behind : "", file_.end_tag(source.element));
  }

  BilingualXml file_;
  const DocumentOptions& options_;
  std::vector<TmxUnit> units_;   // that have the source language
  std::string target_language_;  // as the file writes it
};

}  // namespace

namespace document_formats {

const DocumentFormat& tmx() {
  static const DocumentFormat format = {
      "tmx", "TMX translation memories", {".tmx"}, [](std::string text, const DocumentOptions& options) {
        return TmxSplitter(std::move(text), options).split();
      }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
