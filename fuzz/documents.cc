// Documents of all formats. The first line names the format and, of an archive, the member whose text follows; "FORMAT
// archive" is followed by an archive. Parts that are replaced by themselves give the document, unless it holds sources
// and targets, and a document with translated parts can be read again.
#include <algorithm>
#include <random>

#include "documents/archive.h"
#include "documents/document.h"
#include "documents/restore_markup.h"
#include "fuzz/reader.h"
#include "qkv/error.h"
#include "text/unicode.h"

namespace {

using namespace qkv;
using fuzz::require;

DocumentOptions fuzz_options() {
  DocumentOptions options;
  options.target_language = "de";
  options.most_bytes = int64_t{1} << 20;
  return options;
}

void check_order(const SplitText& document) {
  size_t begin = 0;
  for (const TextPart& part : document.parts) {
    require(part.begin >= begin && part.begin <= part.end && part.end <= document.bytes.size(), "parts are in order");
    require(!split_words(part.text).empty(), "a part has text");
    begin = part.begin;
    for (const InlineTag& tag : part.tags)
      require(tag.at <= part.text.size() && tag.begin <= tag.end && tag.end <= document.bytes.size(), "tags are in it");
  }
}

// Words of the source in any order, others, and marks of the formats.
Translation drawn_document_translation(const std::string& text, std::minstd_rand& random) {
  constexpr std::string_view kWords[] = {"w", "<&>", "\"'", "\\", "# - *", "]]>", ": x", "=|`", "{a}", "é"};
  Translation translation{text, {}, {{}}};
  for (const std::string_view word : split_words(text)) {
    if (translation.source_tokens.size() >= 40) break;
    translation.source_tokens.push_back("▁" + std::string(word));
  }
  Hypothesis& target = translation.hypotheses[0];
  const size_t sources = translation.source_tokens.size();
  for (size_t i = 0; i < sources + 2; i++) {
    const size_t source = random() % sources;
    const bool is_same = random() % 2 == 0;
    const std::string word = is_same ? translation.source_tokens[source].substr(std::string_view("▁").size())
                                     : std::string(kWords[random() % std::size(kWords)]);
    target.text += (i == 0 ? "" : " ") + word;
    target.tokens.push_back("▁" + word);
    target.alignment.push_back({static_cast<int32_t>(source), static_cast<int32_t>(i)});
  }
  return translation;
}

Translation same_translation(const std::string& text) {
  Translation translation{text, {}, {{}}};
  translation.hypotheses[0].text = text;
  return translation;
}

template <class Translate>
std::string translated(const SplitText& document, Translate translate) {
  std::vector<std::string> replacements(document.parts.size());
  for (size_t i = replacements.size(); i-- > 0;)  // parts within a part come after it
    replacements[i] = restore_markup(document, document.parts[i], translate(document.parts[i].text), 0, replacements);
  return join(document, replacements);
}

void check_text(SplitFunction split, const std::string& text, std::minstd_rand& random) {
  const SplitText document = split(text, fuzz_options());
  check_order(document);
  if (document.parts.size() > 200) return;  // an input takes milliseconds
  const std::string same = translated(document, same_translation);
  const bool has_targets =
      std::ranges::any_of(document.parts, [](const TextPart& part) { return part.source.has_value(); });
  require(has_targets || same == document.bytes, "parts that are replaced by themselves give the document");
  const std::string other =
      translated(document, [&](const std::string& part) { return drawn_document_translation(part, random); });
  fuzz::must_succeed([&] {
    expect_utf8(other);
    split(other, fuzz_options());
  });
}

void check_archive(const DocumentFormat& format, std::string bytes, std::minstd_rand& random) {
  const Document document(format, bytes, fuzz_options());
  std::vector<Translation> same, other;
  for (const std::string& text : document.part_texts()) {
    same.push_back(same_translation(text));
    other.push_back(drawn_document_translation(text, random));
  }
  require(document.translated(same) == bytes, "parts that are replaced by themselves give the archive");
  const std::string translated = document.translated(other);
  fuzz::must_succeed([&] { Document(format, translated, fuzz_options()); });
}

}  // namespace

void qkv::fuzz::fuzz_documents(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  std::string text(bytes.substr(std::min(bytes.size(), line.size() + 1)));
  const std::string_view name = line.substr(0, line.find(' '));
  const std::string_view member = line.substr(std::min(line.size(), name.size() + 1));
  const DocumentFormat* format = find_document_format(name);
  if (!format) throw Error("unknown format");
  std::minstd_rand random(static_cast<uint32_t>(text.size() + (text.empty() ? 0 : text.back())));
  if (member == "archive" && format->split_member) return check_archive(*format, std::move(text), random);
  const SplitFunction split = format->split_member ? format->split_member(member) : format->split;
  if (!split) throw Error("unknown member");
  expect_utf8(text);
  check_text(split, text, random);
}
