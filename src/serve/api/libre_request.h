// Requests of LibreTranslate's clients: fields of a JSON body, a form or the query, and the languages that are served.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "documents/document.h"
#include "serve/engine/request_object.h"
#include "serve/engine/service.h"
#include "serve/engine/text_work.h"
#include "serve/http/multipart.h"

namespace qkv {

class LibreFields {
 public:
  // Reads the body by its media type, and the query; names that are not known are ignored. The member api_key
  // identifies the client. Throws HttpError 400, and as Call::identify does.
  explicit LibreFields(Call& call);

  // Returns a text or number; "" if there is none.
  std::string text(const std::string& name) const;
  // Returns a text. Throws HttpError 400 if there is none.
  std::string required(const std::string& name) const;
  // Returns the texts of a list, or of a name that is repeated in a form.
  const Texts& texts(const std::string& name) const;
  // Returns the parts of a form with files, whose bytes belong to the call; none for other bodies.
  const std::vector<FormPart>& form() const { return form_; }

 private:
  std::vector<FormPart> form_;
  std::map<std::string, Texts> fields_;
};

// A translator and the codes of its languages as it knows them.
struct LibrePair {
  ModelPtr model;
  std::string source, target;
};

// The languages of all translators. A model with several translates between each two of them.
class LibreLanguages {
 public:
  explicit LibreLanguages(const Service& service);

  std::vector<std::string> sources() const;                           // codes, each once
  std::vector<std::string> targets(const std::string& source) const;  // without the source
  // Returns the first translator from a language to another. Throws HttpError 400 in LibreTranslate's words.
  LibrePair find(const std::string& source, const std::string& target) const;
  // Returns the first translator from a language.
  ModelPtr any_from(const std::string& source) const;
  bool has(const std::string& language) const;

 private:
  std::vector<LibrePair> pairs_;
};

// Returns the parts of a document for a translator, each with these many alternatives, at most max_beam − 1.
std::vector<TextToTranslate> parts_to_translate(const ServerOptions& limits, const Document& document,
                                                const LibrePair& pair, int64_t alternatives);

// Throws HttpError 400 for more parts than a request may have texts.
void check_parts(const ServerOptions& limits, size_t parts);

}  // namespace qkv
