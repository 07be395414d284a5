#include "documents/office/office_fields.h"

#include <string>
#include <utility>
#include <vector>

namespace qkv {
namespace {

constexpr size_t kLongestFieldCode = 64;  // bytes of a field's code that are read

// A start tag of fldChar, its run, and the element around the run; none if it stands in no run.
struct FieldMark {
  size_t token = XmlToken::kNone, run = XmlToken::kNone, parent = XmlToken::kNone;
};

struct OpenField {
  FieldMark begin = {}, separator = {};
  size_t paragraphs = 0;  // that started before it
  std::string code = {};

  bool is_link() const {
    const size_t at = code.find_first_not_of(" \t\r\n");
    return at != code.npos && std::string_view(code).substr(at).starts_with("HYPERLINK");
  }
};

class FieldFinder {
 public:
  FieldFinder(std::string_view xml, std::span<const XmlToken> tokens, std::span<const OfficeRole> roles)
      : xml_(xml), tokens_(tokens), roles_(roles) {}

  std::unordered_map<size_t, OfficeField> find() {
    for (size_t i = 0; i < tokens_.size(); i++) {
      if (tokens_[i].kind == XmlToken::Kind::end) {
        elements_.pop_back();
      } else if (tokens_[i].kind == XmlToken::Kind::start) {
        if (roles_[i] == OfficeRole::paragraph) paragraphs_++;
        if (roles_[i] == OfficeRole::field) add_mark(i);
        elements_.push_back(i);
      } else if (tokens_[i].kind == XmlToken::Kind::text && !open_.empty() && is_code()) {
        add_code(xml_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin));
      }
    }
    return std::move(found_);
  }

 private:
  bool is_code() const { return !elements_.empty() && tokens_[elements_.back()].local() == "instrText"; }

  void add_code(std::string_view text) {
    OpenField& field = open_.back();
    const bool is_complete = field.separator.token != XmlToken::kNone || field.code.size() >= kLongestFieldCode;
    if (!is_complete) field.code += text.substr(0, kLongestFieldCode);
  }

  void add_mark(size_t i) {
    FieldMark mark = {i};
    if (elements_.size() > 1 && roles_[elements_.back()] == OfficeRole::run) {
      mark.run = elements_.back();
      mark.parent = elements_[elements_.size() - 2];
    }
    const std::string_view type = office_attribute(tokens_[i], "fldCharType");
    if (type == "begin")
      open_.push_back({.begin = mark, .paragraphs = paragraphs_});
    else if (type == "separate" && !open_.empty())
      open_.back().separator = mark;
    else if (type == "end" && !open_.empty())
      end_field(mark);
  }

  void end_field(const FieldMark& end) {
    const OpenField field = std::move(open_.back());
    open_.pop_back();
    const bool is_in_paragraph =
        end.parent != XmlToken::kNone && end.parent == field.begin.parent && field.paragraphs == paragraphs_;
    if (!is_in_paragraph) return;
    if (field.is_link() && field.separator.parent == end.parent) {
      found_[field.begin.token] = until(OfficeField::Kind::link_open, field.separator);
      found_[end.token] = until(OfficeField::Kind::link_close, end);
    } else {
      found_[field.begin.token] = until(OfficeField::Kind::whole, end);
    }
  }

  OfficeField until(OfficeField::Kind kind, const FieldMark& last) const {
    return {kind, tokens_[last.token].partner, last.run};
  }

  std::string_view xml_;
  std::span<const XmlToken> tokens_;
  std::span<const OfficeRole> roles_;
  std::vector<size_t> elements_ = {};  // that are open
  std::vector<OpenField> open_ = {};
  size_t paragraphs_ = 0;
  std::unordered_map<size_t, OfficeField> found_ = {};
};

}  // namespace

std::unordered_map<size_t, OfficeField> find_office_fields(std::string_view xml, std::span<const XmlToken> tokens,
                                                           std::span<const OfficeRole> roles) {
  return FieldFinder(xml, tokens, roles).find();
}

}  // namespace qkv
