// Splits members of office documents, and translates their parts by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "documents/document.h"
#include "documents/restore_markup.h"
#include "tests/documents/translations.h"

namespace qkv::testing {

// A translation of "the red house", with its words in another order.
inline Translation red_house() {
  return translation({"▁the", "▁red", "▁house", "</s>"}, {"▁la", "▁casa", "▁roja"}, {0, 2, 1});
}

// A member with its root element around what a test is about.
struct OfficeMember {
  std::string format, name, before, after;

  SplitText split(const std::string& content) const {
    return find_document_format(format)->split_member(name)(before + content + after, {});
  }

  // The content with each part in brackets, and with its tags as {, } and |.
  std::string parts(const std::string& content) const {
    std::string marked;
    for (const TextPart& part : split(content).parts) {
      std::string text = part.text;
      for (auto tag = part.tags.rbegin(); tag != part.tags.rend(); ++tag)
        text.insert(tag->at, tag->kind == InlineTag::Kind::open    ? "{"
                             : tag->kind == InlineTag::Kind::close ? "}"
                                                                   : "|");
      marked += "[" + text + "]";
    }
    return marked;
  }

  // The content with its only part translated.
  std::string translated(const std::string& content, const Translation& translation) const {
    const SplitText document = split(content);
    if (document.parts.size() != 1) return std::to_string(document.parts.size()) + " parts";
    const std::string joined = join(document, std::vector{restore_markup(document, document.parts[0], translation)});
    return joined.substr(before.size(), joined.size() - before.size() - after.size());
  }
};

}  // namespace qkv::testing
