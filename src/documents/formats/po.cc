// Message catalogs of gettext. An empty msgstr gets the translation of its msgid; of plural forms, msgstr[0] that of
// msgid and all others that of msgid_plural. These stay: the header, comments, contexts, obsolete entries, entries that
// are translated, those with more or fewer forms than the header says, and fuzzy ones, whose msgstr is a translator's
// draft. Translations are not marked as fuzzy, because msgfmt leaves such entries out: a program would show none of
// them.
#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "documents/bilingual/po_entries.h"
#include "documents/document.h"
#include "documents/strings/string_part.h"

namespace qkv {
namespace {

constexpr size_t kPoWidth = 79;  // columns of a line with its quotes, as msgcat breaks them
// Columns of a string that stands behind the keyword, with its quotes.
constexpr size_t kBehindMsgstr = kPoWidth - std::string_view("msgstr ").size();
constexpr size_t kBehindForm = kPoWidth - std::string_view("msgstr[0] ").size();

size_t po_columns(std::string_view text) {
  size_t columns = 0;
  for_each_code_point(text, [&](UChar32 code, std::string_view) {
    const int32_t width = u_getIntPropertyValue(code, UCHAR_EAST_ASIAN_WIDTH);
    columns += width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
  });
  return columns;
}

std::string escaped_po(std::string_view text) {
  std::string escaped;
  append_as_po(text, escaped);
  return escaped;
}

// Appends a line of text with quotes around its pieces, but for the first and the last quote.
void append_wrapped(std::string_view line, std::string_view line_break, std::string& to) {
  std::string escaped = escaped_po(line);
  if (po_columns(escaped) + 2 <= kPoWidth) {
    to += escaped;
    return;
  }
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createLineInstance(icu::Locale::getRoot(), status));
  const std::unique_ptr<UText, UText* (*)(UText*)> utext(
      utext_openUTF8(nullptr, line.data(), std::ssize(line), &status), utext_close);
  if (U_SUCCESS(status)) breaks->setText(utext.get(), status);
  if (U_FAILURE(status)) fail("line breaks: {} on a text of {} bytes", u_errorName(status), line.size());
  size_t columns = 2, begin = 0;
  for (int32_t end = breaks->next(); end != icu::BreakIterator::DONE; end = breaks->next()) {
    const std::string piece = escaped_po(line.substr(begin, to_size(end) - begin));
    const size_t width = po_columns(piece);
    if (columns > 2 && columns + width > kPoWidth) {
      to += line_break;
      columns = 2;
    }
    to += piece;
    columns += width;
    begin = to_size(end);
  }
}

// Appends a text as the content of strings in quotes, one line for each of its lines. columns: for a text
// behind the keyword, otherwise it begins on the next line; 0: the first quote already begins a line.
template <size_t columns, bool has_carriage_return>
void append_po_lines(std::string_view text, std::string& to) {
  constexpr std::string_view kBreak = has_carriage_return ? "\"\r\n\"" : "\"\n\"";
  if (columns > 0 && (text.find('\n') != text.npos || po_columns(escaped_po(text)) + 2 > columns)) to += kBreak;
  while (!text.empty()) {
    const size_t line_end = text.find('\n');
    const std::string_view line = line_end == text.npos ? text : text.substr(0, line_end + 1);
    append_wrapped(line, kBreak, to);
    text.remove_prefix(line.size());
    if (!text.empty()) to += kBreak;
  }
}

template <size_t columns>
constexpr TextSpelling kPoSpellings[] = {{decode_nothing, append_po_lines<columns, false>},
                                         {decode_nothing, append_po_lines<columns, true>}};

bool has_letter_or_digit(std::string_view text) {
  bool has = false;
  for_each_code_point(text, [&](UChar32 code, std::string_view) { has |= u_isalnum(code) != 0; });
  return has;
}

class PoSplitter {
 public:
  explicit PoSplitter(std::string file) : document_{.bytes = std::move(file)} {}

  SplitText split() {
    const size_t line_end = document_.bytes.find('\n');
    has_carriage_return_ = line_end != std::string::npos && line_end > 0 && document_.bytes[line_end - 1] == '\r';
    for (const PoEntry& entry : read_po(document_.bytes)) {
      const std::string id = po_text(document_.bytes, entry.id);
      if (id.empty())
        read_header(po_text(document_.bytes, entry.strings.front()));
      else if (!entry.is_fuzzy)
        add_entry(entry, id);
    }
    return std::move(document_);
  }

 private:
  void read_header(std::string_view header) {
    check_charset(header);
    const std::string_view plural = header.substr(std::min(header.find("Plural-Forms:"), header.size()));
    has_modulo_ = plural.substr(0, plural.find('\n')).find('%') != plural.npos;
    constexpr std::string_view kForms = "nplurals=";
    const std::string_view forms = plural.substr(std::min(plural.find(kForms), plural.size()));
    if (!forms.empty()) std::from_chars(forms.data() + kForms.size(), forms.data() + forms.size(), forms_);
  }

  // CHARSET is what xgettext writes until there is a character beyond ASCII.
  static void check_charset(std::string_view header) {
    constexpr std::string_view kKey = "charset=";
    const size_t key = header.find(kKey);
    if (key == header.npos) return;
    header.remove_prefix(key + kKey.size());
    std::string charset(header.substr(0, header.find_first_of(" \t\r\n;\\")));
    std::ranges::transform(charset, charset.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
    if (charset != "UTF-8" && charset != "UTF8" && charset != "CHARSET")
      fail("the header's charset is {} (must be UTF-8; msgconv -t UTF-8 converts the file)", charset.substr(0, 32));
  }

  // msgfmt refuses an entry with a translation if its number of forms is not that of the header.
  void add_entry(const PoEntry& entry, const std::string& id) {
    if (entry.has_plural() && forms_ > 0 && entry.strings.size() != forms_) return;
    const std::string plural = entry.has_plural() ? po_text(document_.bytes, entry.plural) : "";
    for (size_t form = 0; form < entry.strings.size(); form++) {
      if (!po_text(document_.bytes, entry.strings[form]).empty()) continue;
      const bool is_plural = entry.has_plural() && (form > 0 || !has_form_of_one(entry, id, plural));
      add_string(entry.strings[form], is_plural ? entry.plural : entry.id, is_plural ? plural : id, entry.has_plural());
    }
  }

  // Whether msgstr[0] is for the number 1 alone. If it is for 21 as well, msgid has to have the same placeholders as
  // msgid_plural to be its source.
  bool has_form_of_one(const PoEntry& entry, std::string_view id, std::string_view plural) const {
    if (entry.strings.size() == 1) return false;
    if (entry.strings.size() == 2 && !has_modulo_) return true;
    const auto placeholders = [](std::string_view text) {
      return std::ranges::count_if(text, [](char c) { return c == '%' || c == '{'; });
    };
    return placeholders(id) == placeholders(plural);
  }

  // White space around the text stays, as msgfmt compares the line feeds at both ends.
  void add_string(ByteRange place, ByteRange source, std::string_view text, bool is_form) {
    if (!has_letter_or_digit(text)) return;
    constexpr std::string_view kSpace = " \t\r\n\f\v";
    const size_t begin = text.find_first_not_of(kSpace), end = text.find_last_not_of(kSpace) + 1;
    const std::string_view before = text.substr(0, begin), after = text.substr(end);
    const std::string line_break = has_carriage_return_ ? "\"\r\n\"" : "\"\n\"";
    TextPart part{.begin = place.begin, .end = place.end, .text = std::string(text.substr(begin, end - begin))};
    part.source = source;
    const bool has_lines = before.find('\n') != before.npos || std::ranges::count(after, '\n') > 1;
    part.opening = has_lines ? "\"" + line_break : "\"";
    append_lines(before, line_break, part.opening);
    append_lines(after, line_break, part.closing);
    part.closing += '"';
    const size_t line_end = has_carriage_return_ ? 1 : 0;
    part.spelling = has_lines ? &kPoSpellings<0>[line_end]
                    : is_form ? &kPoSpellings<kBehindForm>[line_end]
                              : &kPoSpellings<kBehindMsgstr>[line_end];
    document_.parts.push_back(std::move(part));
  }

  // Appends white space, with a new string after each line feed in it if another one follows, or the text.
  static void append_lines(std::string_view space, std::string_view line_break, std::string& to) {
    const bool is_before = to.starts_with('"');
    for (size_t i = 0; i < space.size(); i++) {
      append_as_po(space.substr(i, 1), to);
      if (space[i] == '\n' && (is_before || i + 1 < space.size())) to += line_break;
    }
  }

  SplitText document_;
  bool has_carriage_return_ = false;  // at the line ends
  size_t forms_ = 0;                  // of plurals, as the header says; 0: it does not
  bool has_modulo_ = false;           // plural forms are chosen by a remainder, such as n % 10
};

}  // namespace

namespace document_formats {

const DocumentFormat& po() {
  static const DocumentFormat format = {
      "po", "gettext message catalogs", {".po", ".pot"}, [](std::string text, const auto&) {
        return PoSplitter(std::move(text)).split();
      }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv
