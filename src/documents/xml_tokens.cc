#include "documents/xml_tokens.h"

#include <expat.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <unordered_map>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kDeepestXml = 512;
constexpr size_t kLongestNamespace = 512;       // bytes, which every name of it repeats
constexpr size_t kBytesPerToken = 4;            // at least, on average, beyond kFewTokens; <si><t>ABCD</t></si> has 4
constexpr size_t kFewTokens = size_t{1} << 18;  // which take 8 MB
constexpr size_t kMostXmlBytes = size_t{1} << 30;  // expat counts in int

// Returns at least the number of tokens of a document: each starts with a tag, at the end of <x/>, or behind a tag.
size_t bound_of_tokens(std::string_view document) {
  size_t count = 2;
  for (size_t i = 0; i < document.size(); i++) {
    if (document[i] == '<') count++;
    if (document[i] != '>') continue;
    if (i > 0 && document[i - 1] == '/') count++;
    if (i + 1 < document.size() && document[i + 1] != '<') count++;
  }
  return count;
}

class XmlReader {
 public:
  explicit XmlReader(std::string_view document)
      : document_(document),
        most_tokens_(kFewTokens + document.size() / kBytesPerToken),
        parser_(XML_ParserCreateNS("UTF-8", ' ')) {
    if (!parser_) throw std::bad_alloc();
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), on_start, on_end);
    XML_SetStartNamespaceDeclHandler(parser_.get(), on_namespace);
    XML_SetCharacterDataHandler(parser_.get(), on_text);
    XML_SetCdataSectionHandler(parser_.get(), on_cdata_start, on_cdata_end);
    XML_SetSkippedEntityHandler(parser_.get(), on_skipped_entity);
    XML_SetEntityDeclHandler(parser_.get(), on_entity);
    XML_SetXmlDeclHandler(parser_.get(), on_declaration);
    XML_SetDefaultHandlerExpand(parser_.get(), on_other);
  }

  XmlTokens read() {
    if (document_.size() > kMostXmlBytes) fail("the XML is larger than {} bytes", kMostXmlBytes);
    read_.tokens.reserve(std::min(bound_of_tokens(document_), most_tokens_ + 1));
    const auto status = XML_Parse(parser_.get(), document_.data(), static_cast<int>(document_.size()), XML_TRUE);
    if (thrown_) std::rethrow_exception(thrown_);
    if (!error_.empty()) fail("line {}: {}", line_, error_);
    if (status != XML_STATUS_OK)
      fail("line {}: not well-formed XML ({})", XML_GetCurrentLineNumber(parser_.get()),
           XML_ErrorString(XML_GetErrorCode(parser_.get())));
    return std::move(read_);
  }

 private:
  struct Free {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };

  // Expat calls these from C: no exception may leave them.
  template <class Function>
  static void guarded(void* self, Function function) {
    auto& reader = *static_cast<XmlReader*>(self);
    if (reader.thrown_ || !reader.error_.empty()) return;
    try {
      function(reader);
    } catch (...) {
      reader.thrown_ = std::current_exception();
      XML_StopParser(reader.parser_.get(), XML_FALSE);
    }
  }
  static void XMLCALL on_start(void* self, const XML_Char* name, const XML_Char** attributes) {
    guarded(self, [&](XmlReader& reader) { reader.start(name, attributes); });
  }
  static void XMLCALL on_namespace(void* self, const XML_Char*, const XML_Char* uri) {
    guarded(self, [&](XmlReader& reader) {
      if (uri && std::string_view(uri).size() > kLongestNamespace)
        reader.stop(fmt::format("a namespace has more than {} bytes", kLongestNamespace));
    });
  }
  static void XMLCALL on_end(void* self, const XML_Char*) {
    guarded(self, [](XmlReader& reader) { reader.end(); });
  }
  static void XMLCALL on_text(void* self, const XML_Char*, int) {
    guarded(self, [](XmlReader& reader) { reader.add(XmlToken::Kind::text); });
  }
  static void XMLCALL on_cdata_start(void* self) {
    guarded(self, [](XmlReader& reader) { reader.add(XmlToken::Kind::text); });
  }
  static void XMLCALL on_cdata_end(void* self) {
    guarded(self, [](XmlReader& reader) { reader.add(XmlToken::Kind::text); });
  }
  static void XMLCALL on_skipped_entity(void* self, const XML_Char*, int is_parameter) {
    if (!is_parameter) guarded(self, [](XmlReader& reader) { reader.add(XmlToken::Kind::text); });
  }
  static void XMLCALL on_entity(void* self, const XML_Char* name, int, const XML_Char*, int, const XML_Char*,
                                const XML_Char*, const XML_Char*, const XML_Char*) {
    guarded(self, [&](XmlReader& reader) {
      reader.stop(fmt::format("declares the entity {}, which is refused", std::string_view(name).substr(0, 32)));
    });
  }
  // Translations are written in UTF-8. A document in UTF-16 is converted before it is read.
  static void XMLCALL on_declaration(void* self, const XML_Char*, const XML_Char* encoding, int) {
    guarded(self, [&](XmlReader& reader) {
      reader.add(XmlToken::Kind::other);
      std::string name = encoding ? encoding : "UTF-8";
      std::ranges::transform(name, name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
      if (name != "UTF-8" && name != "UTF8" && name != "UTF-16")
        reader.stop(fmt::format("declares the encoding {} (must be UTF-8 or UTF-16)", name.substr(0, 32)));
    });
  }
  static void XMLCALL on_other(void* self, const XML_Char*, int) {
    guarded(self, [](XmlReader& reader) { reader.add(XmlToken::Kind::other); });
  }

  void stop(std::string error) {
    error_ = std::move(error);
    line_ = XML_GetCurrentLineNumber(parser_.get());
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  // Adds the bytes of the event that expat reports; text and other markup continue a token of the same kind.
  XmlToken& add(XmlToken::Kind kind) {
    const size_t begin = to_size(XML_GetCurrentByteIndex(parser_.get()));
    const size_t end = begin + to_size(XML_GetCurrentByteCount(parser_.get()));
    std::vector<XmlToken>& tokens = read_.tokens;
    const bool continues = kind == XmlToken::Kind::text || kind == XmlToken::Kind::other;
    if (continues && !tokens.empty() && tokens.back().kind == kind && tokens.back().end >= begin) {
      tokens.back().end = std::max(tokens.back().end, static_cast<uint32_t>(end));
      return tokens.back();
    }
    if (tokens.size() == most_tokens_) stop("it has too many tags for its size");
    return tokens.emplace_back(
        XmlToken{.kind = kind, .begin = static_cast<uint32_t>(begin), .end = static_cast<uint32_t>(end)});
  }

  void start(const XML_Char* name, const XML_Char** attributes) {
    if (open_.size() == kDeepestXml) return stop(fmt::format("elements are nested more than {} deep", kDeepestXml));
    XmlToken& token = add(XmlToken::Kind::start);
    token.name = intern(name);
    if (*attributes) token.listed = &add_attributes(attributes);
    open_.push_back(static_cast<uint32_t>(read_.tokens.size() - 1));
  }

  const XmlAttributes& add_attributes(const XML_Char** attributes) {
    size_t count = 0;
    while (attributes[2 * count]) count++;
    XmlAttributes& added = read_.attributes.emplace_back();
    added.reserve(count);
    for (; *attributes; attributes += 2) added.emplace_back(intern(attributes[0]), attributes[1]);
    return added;
  }

  void end() {
    const uint32_t start = open_.back();
    open_.pop_back();
    XmlToken& token = add(XmlToken::Kind::end);
    token.name = read_.tokens[start].name;
    token.partner = start;
    read_.tokens[start].partner = static_cast<uint32_t>(read_.tokens.size() - 1);
  }

  const std::string* intern(std::string_view name) {
    const auto found = places_.find(name);
    if (found != places_.end()) return found->second;
    const std::string& kept = read_.names.emplace_back(name);
    return places_.emplace(kept, &kept).first->second;
  }

  std::string_view document_;
  size_t most_tokens_;
  std::unique_ptr<XML_ParserStruct, Free> parser_;
  XmlTokens read_;
  std::unordered_map<std::string_view, const std::string*> places_;
  std::vector<uint32_t> open_;  // start tags
  std::string error_;
  std::exception_ptr thrown_;
  size_t line_ = 0;
};

}  // namespace

const XmlAttributes& XmlToken::attributes() const {
  static const XmlAttributes kNoAttributes;
  return listed ? *listed : kNoAttributes;
}

std::string_view XmlToken::local() const {
  const std::string_view all = name ? std::string_view(*name) : std::string_view();
  return all.substr(all.rfind(' ') + 1);
}

std::string_view XmlToken::space() const {
  const std::string_view all = name ? std::string_view(*name) : std::string_view();
  const size_t space_end = all.rfind(' ');
  return space_end == all.npos ? std::string_view() : all.substr(0, space_end);
}

const std::string* XmlToken::attribute(std::string_view wanted) const {
  const XmlAttributes& all = attributes();
  const auto found = std::ranges::find_if(all, [&](const auto& a) { return *a.first == wanted; });
  return found == all.end() ? nullptr : &found->second;
}

XmlTokens read_xml(std::string_view document) { return XmlReader(document).read(); }

}  // namespace qkv
