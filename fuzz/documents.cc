// Documents, with a target for each format; odp and ods have the reader of odt. For a format that is an archive the
// first line names the member whose text follows, or is "archive", which an archive follows. Parts that are replaced by
// themselves give the document, unless it holds sources and targets, and a document with translated parts can be read
// again.
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

void check_text(SplitFunction split, std::string text, std::minstd_rand& random) {
  expect_utf8(text);
  const SplitText document = split(std::move(text), fuzz_options());
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

void read_document(std::string_view target, std::string_view bytes) {
  target.remove_prefix(std::string_view("documents_").size());
  const DocumentFormat& format = *find_document_format(target);
  std::minstd_rand random(static_cast<uint32_t>(bytes.size() + (bytes.empty() ? 0 : bytes.back())));
  if (!format.split_member) return check_text(format.split, std::string(bytes), random);
  const std::string_view member = bytes.substr(0, bytes.find('\n'));
  std::string text(bytes.substr(std::min(bytes.size(), member.size() + 1)));
  if (member == "archive") return check_archive(format, std::move(text), random);
  const SplitFunction split = format.split_member(member);
  if (!split) throw Error("unknown member");
  check_text(split, std::move(text), random);
}

}  // namespace

#define QKV_READ(target) \
  void qkv::fuzz::fuzz_##target(std::string_view bytes) { read_document(#target, bytes); }
QKV_FUZZ_DOCUMENTS(QKV_READ)
#undef QKV_READ
