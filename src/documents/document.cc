#include "documents/document.h"

#include <algorithm>
#include <utility>

#include "core/ascii.h"
#include "core/fail.h"
#include "documents/archive.h"
#include "documents/document_encoding.h"
#include "documents/restore_markup.h"

namespace qkv {
namespace {

bool ends_with_extension(std::string_view name, std::string_view extension) {
  return name.size() > extension.size() && equals_ignoring_case(name.substr(name.size() - extension.size()), extension);
}

}  // namespace

const DocumentFormat* find_document_format(std::string_view name) {
  const auto formats = all_document_formats();
  const auto found = std::ranges::find(formats, name, &DocumentFormat::name);
  return found == formats.end() ? nullptr : *found;
}

const DocumentFormat* format_of_file(std::string_view file_name) {
  const auto formats = all_document_formats();
  const auto found = std::ranges::find_if(formats, [&](const DocumentFormat* format) {
    return std::ranges::any_of(format->extensions, [&](auto e) { return ends_with_extension(file_name, e); });
  });
  return found == formats.end() ? nullptr : *found;
}

const DocumentFormat& document_format(std::string_view file_name, const DocumentOptions& options) {
  const bool is_named = !options.format.empty();
  const DocumentFormat* format = is_named ? find_document_format(options.format) : format_of_file(file_name);
  if (format) return *format;
  std::string accepted;
  for (const DocumentFormat* f : all_document_formats())
    accepted += fmt::format("{}{}", accepted.empty() ? "" : " ", is_named ? f->name : f->extensions.front());
  if (is_named) fail("unknown format {} of a document (known: {})", options.format, accepted);
  fail("{} is not a document that can be translated (known: {})", file_name, accepted);
}

Document::Document(const DocumentFormat& format, std::string bytes, const DocumentOptions& options) {
  if (!format.split_member) {
    encoding_ = encoding_of(bytes);
    texts_.push_back(format.split(as_utf8(std::move(bytes), encoding_), options));
    return;
  }
  if (bytes.starts_with("\xD0\xCF\x11\xE0"))
    fail("it is protected by a password, or in a format of Office before 2007 (must be a {} file)", format.name);
  is_archive_ = true;
  archive_ = std::move(bytes);
  const auto most_bytes = static_cast<uint64_t>(options.most_bytes);
  std::vector<ArchiveMember> members = read_members(archive_, format.split_member, most_bytes);
  // First those that say whether others are encrypted.
  std::ranges::stable_partition(members, [](const auto& m) { return m.name.starts_with("META-INF/"); });
  for (ArchiveMember& member : members) {
    try {
      expect_utf8(member.bytes);
      SplitText text = format.split_member(member.name)(std::move(member.bytes), options);
      if (text.bytes.empty()) continue;  // the member is only checked
      texts_.push_back(std::move(text));
    } catch (const Error& error) {
      fail("{}: {}", member.name, error.what());
    }
    members_.push_back(std::move(member.name));
  }
  if (format.remove_parts) format.remove_parts(members_, texts_);
  if (texts_.empty()) fail("the archive has no text of the format {}", format.name);
}

size_t Document::parts() const {
  size_t parts = 0;
  for (const SplitText& text : texts_) parts += text.parts.size();
  return parts;
}

std::vector<std::string> Document::part_texts() const {
  std::vector<std::string> all;
  for (const SplitText& text : texts_)
    for (const TextPart& part : text.parts) all.push_back(part.text);
  return all;
}

bool Document::has_tags() const {
  return std::ranges::any_of(texts_, [](const SplitText& text) {
    return std::ranges::any_of(text.parts, [](const TextPart& part) { return !part.tags.empty(); });
  });
}

std::string Document::replaced(std::span<const std::string> replacements) const {
  if (replacements.size() != parts())
    fail("a document of {} parts needs as many replacements (has {})", parts(), replacements.size());
  std::vector<ArchiveMember> members;
  for (size_t i = 0; i < texts_.size(); i++) {
    const size_t count = texts_[i].parts.size();
    std::string joined = join(texts_[i], replacements.first(count));
    replacements = replacements.subspan(count);
    if (!is_archive_) return from_utf8(std::move(joined), encoding_);
    if (joined != texts_[i].bytes) members.push_back({members_[i], std::move(joined)});
  }
  return replace_members(archive_, members);
}

std::string Document::translated(std::span<const Translation> translations, size_t hypothesis) const {
  if (translations.size() != parts())
    fail("a document of {} parts needs as many translations (has {})", parts(), translations.size());
  std::vector<std::string> replacements(translations.size());
  size_t first = 0;  // part of a text
  for (const SplitText& text : texts_) {
    const std::span own = std::span(replacements).subspan(first, text.parts.size());
    for (size_t i = text.parts.size(); i-- > 0;) {  // parts within a part come after it
      const Translation& translation = translations[first + i];
      const size_t last = translation.hypotheses.size() - 1;
      own[i] = restore_markup(text, text.parts[i], translation, std::min(hypothesis, last), own);
    }
    first += text.parts.size();
  }
  return replaced(replacements);
}

}  // namespace qkv
