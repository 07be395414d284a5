#include "serve/api/page.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/digest.h"
#include "core/placeholders.h"
#include "eval/assets/attention_view.css.h"
#include "eval/assets/attention_view.html.h"
#include "eval/assets/attention_view.js.h"
#include "serve/api/assets/generate.js.h"
#include "serve/api/assets/page.css.h"
#include "serve/api/assets/page.html.h"
#include "serve/api/assets/page.js.h"
#include "serve/api/assets/recommend.js.h"
#include "serve/api/assets/requests.js.h"
#include "serve/api/assets/translate.js.h"
#include "serve/api/assets/translate_attention.js.h"
#include "serve/api/assets/translate_choices.js.h"

namespace qkv {

namespace {

// Returns a style or a script without indentation, empty lines and lines that are comments.
std::string compact(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    if (!line.empty() && !line.starts_with("//")) lines.append(line).append("\n");
  }
  return lines;
}

std::string assemble() {
  const std::string style = compact(kAttentionViewCss) + compact(kPageCss);
  std::string script;
  for (const std::string_view part : {kAttentionViewJs, kRequestsJs, kPageJs, kTranslateJs, kTranslateAttentionJs,
                                      kTranslateChoicesJs, kRecommendJs, kGenerateJs})
    script += compact(part);
  return fill_in(kPageHtml, {{"{{style}}", style}, {"{{view}}", kAttentionViewHtml}, {"{{script}}", script}});
}

// Returns the source expression for the text between two tags of the page: 'sha256-…', in base64.
std::string hash_between(std::string_view begin, std::string_view end) {
  const size_t from = server_page().find(begin) + begin.size();
  Sha256 sum;
  sum.add(server_page().substr(from, server_page().find(end, from) - from));
  const std::string bytes = sum.bytes();
  std::array<unsigned char, 45> text{};  // 44 digits for 32 bytes, and a zero
  EVP_EncodeBlock(text.data(), reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  return fmt::format("'sha256-{}'", reinterpret_cast<const char*>(text.data()));
}

}  // namespace

std::string_view server_page() {
  static const std::string page = assemble();
  return page;
}

std::string page_security_policy() {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'; require-trusted-types-for 'script'",
      hash_between("<script>", "</script>"), hash_between("<style>", "</style>"));
}

}  // namespace qkv
