// Texts with parts to translate: HTML and subtitles, whose other bytes stay, and tags that return into a translation
// with any alignment.
#include "documents/html.h"

#include <algorithm>
#include <random>

#include "documents/restore_markup.h"
#include "documents/split_text.h"
#include "documents/subtitles.h"
#include "documents/tag_layout.h"
#include "fuzz/reader.h"
#include "text/unicode.h"

namespace {

using namespace qkv;
using fuzz::require;

constexpr size_t kMostParts = 3;

void check_parts(const SplitText& document) {
  std::vector<std::string> same;
  size_t done = 0;
  for (const TextPart& part : document.parts) {
    require(part.begin >= done && part.begin < part.end && part.end <= document.bytes.size(), "parts are in order");
    same.emplace_back(document.bytes_of(part));
    done = part.end;
    size_t at = 0, end = part.begin;
    for (const InlineTag& tag : part.tags) {
      require(tag.at >= at && tag.at <= part.text.size(), "tags have the order of the text");
      require(tag.begin >= end && tag.begin < tag.end && tag.end <= part.end, "tags are in the part");
      at = tag.at, end = tag.end;
    }
    require(whole_characters(part.text) == part.text.size() || find_invalid_utf8(document.bytes) != std::string::npos,
            "texts have whole characters");
  }
  require(join(document, same) == document.bytes, "parts that are replaced by themselves give the document");
}

// Words of the source and others, and the alignment, are drawn.
Translation drawn_translation(const std::string& text, std::minstd_rand& random) {
  Translation translation{text, {}, {{}}};
  for (const std::string_view word : split_words(text)) {
    if (translation.source_tokens.size() >= 100) break;
    translation.source_tokens.push_back("▁" + std::string(word.substr(0, word.size() / 2)));
    translation.source_tokens.emplace_back(word.substr(word.size() / 2));
  }
  translation.source_tokens.emplace_back("</s>");
  Hypothesis& target = translation.hypotheses[0];
  const size_t words = random() % (translation.source_tokens.size() + 4);
  for (size_t i = 0; i < words; i++) {
    const std::string& drawn = translation.source_tokens[random() % translation.source_tokens.size()];
    const std::string word = random() % 3 ? "w" : find_invalid_utf8(drawn) < drawn.size() ? "<&>." : drawn;
    const bool has_space = random() % 4 != 0;
    target.tokens.push_back((has_space ? "▁" : "") + word);
    target.text += (has_space && !target.text.empty() ? " " : "") + word;
    if (random() % 8 != 0)
      target.alignment.push_back(
          {static_cast<int32_t>(random() % (translation.source_tokens.size() + 2)) - 1, static_cast<int32_t>(i)});
  }
  return translation;
}

// Returns for each tag the one that opens the element around it; kNone: none.
std::vector<size_t> tags_around(const TextPart& part, const std::vector<PlacedTag>& order) {
  std::vector<size_t> around(part.tags.size()), open = {InlineTag::kNone};
  std::vector<int> count(part.tags.size());
  size_t unit = 0;
  for (const PlacedTag& placed : order) {
    require(placed.tag < part.tags.size() && count[placed.tag]++ == 0 && placed.unit >= unit, "a tag stands once");
    unit = placed.unit;
    const InlineTag& tag = part.tags[placed.tag];
    const bool is_matched = tag.partner != InlineTag::kNone;
    if (is_matched && tag.kind == InlineTag::Kind::close) {
      require(open.back() == tag.partner, "elements are nested");
      open.pop_back();
    }
    around[placed.tag] = open.back();
    if (is_matched && tag.kind == InlineTag::Kind::open) open.push_back(placed.tag);
  }
  require(open.size() == 1 && order.size() == part.tags.size(), "every tag returns");
  return around;
}

void check_put_back(const SplitText& document, const TextPart& part, std::minstd_rand& random) {
  const Translation translation = drawn_translation(part.text, random);
  const AlignedUnits aligned = align_units(part.text, translation.source_tokens, translation.hypotheses[0]);
  const std::vector<PlacedTag> placed = place_tags(part, aligned);
  std::vector<PlacedTag> source;
  for (size_t i = 0; i < part.tags.size(); i++) source.push_back({i, 0});
  require(tags_around(part, placed) == tags_around(part, source), "elements are nested as in the source");
  const std::string put = restore_markup(document, part, translation);
  const bool has_other_tags = std::ranges::any_of(part.tags, [&](const InlineTag& tag) {
    return !document.bytes_of(tag).starts_with('<');  // {\an8} of a subtitle
  });
  if (document.spelling == &kPlainSpelling || has_other_tags || translation.text() == part.text) return;
  size_t at = 0;
  for (const PlacedTag& tag : placed) {
    at = put.find('<', at);
    const std::string_view bytes = document.bytes_of(part.tags[tag.tag]);
    require(at != put.npos && put.compare(at, bytes.size(), bytes) == 0, "tags have their bytes");
    at += bytes.size();
  }
  require(put.find('<', at) == put.npos, "texts are escaped");
}

}  // namespace

void qkv::fuzz::fuzz_html(std::string_view bytes) {
  std::minstd_rand random(static_cast<uint32_t>(bytes.size() + (bytes.empty() ? 0 : bytes.back())));
  using Split = SplitText (*)(std::string);
  for (const Split split : {Split(split_html), Split(split_xhtml),
                            Split([](std::string text) { return split_subtitles(std::move(text), kPlainSpelling); }),
                            Split([](std::string text) { return split_subtitles(std::move(text), kHtmlSpelling); })}) {
    const SplitText document = split(std::string(bytes));
    check_parts(document);
    for (size_t i = 0; i < std::min(document.parts.size(), kMostParts); i++)
      check_put_back(document, document.parts[i], random);
  }
}
