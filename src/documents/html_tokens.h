// HTML as a sequence of tags, text and comments, by the rules of the HTML standard's tokenizer (section 13.2.5), and
// the characters that are spelt as references in its text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qkv {

struct HtmlToken {
  // raw: the content of an element like <script>, which is neither markup nor prose. comment: <!-- -->, <!DOCTYPE>,
  // <?xml ?> and other markup without an effect, also a tag that the document ends in.
  enum class Kind { text, start, end, comment, raw };

  Kind kind = Kind::text;
  size_t begin = 0, end = 0;     // bytes of the document
  std::string name = {};         // of a tag, in lower case
  bool is_self_closing = false;  // <x/>
  bool is_untranslated = false;  // translate="no", the class notranslate, or the mark of a footnote
};

// Any bytes are HTML: the tokens cover all of them, in order. Takes time linear in the size of the document.
class HtmlTokenizer {
 public:
  explicit HtmlTokenizer(std::string_view html) : html_(html) {}

  // Reads the next token; returns false at the end. is_foreign: within <svg> or <math>, whose <style> and <title> are
  // ordinary elements, and which have <![CDATA[ ]]>.
  bool next(HtmlToken& token, bool is_foreign);

 private:
  bool read_content(HtmlToken& token);
  void read_markup(HtmlToken& token, bool is_foreign);
  void read_declaration(HtmlToken& token, bool is_foreign);
  void read_tag(HtmlToken& token);
  void read_attribute(HtmlToken& token);
  void finish(HtmlToken& token, HtmlToken::Kind kind, size_t end);
  bool begins_markup(size_t at) const;
  char byte(size_t at) const { return at < html_.size() ? html_[at] : '\0'; }

  std::string_view html_;
  size_t at_ = 0;
  std::string content_of_ = {};  // the element whose content follows, if that is not markup
  bool has_translate_ = false, has_class_ = false;
};

// Appends the characters of the reference at the beginning of html, which is "&", and returns its length in bytes; 0 if
// it is none. Follows the HTML standard: 2231 names, of which 106 need no semicolon; numbers that stand for no
// character give U+FFFD, those of C1 controls the characters of Windows-1252.
size_t decode_reference(std::string_view html, std::string& to);

// Appends text as HTML: "&", "<", ">" and no-break spaces become references.
void append_as_html(std::string_view text, std::string& to);

}  // namespace qkv
