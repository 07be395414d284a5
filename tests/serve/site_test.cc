// The page is one file that needs nothing from elsewhere, and the policy allows its script and style only.
#include "serve/api/site.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <regex>
#include <string>

namespace qkv {
namespace {

int count_of(std::string_view text, std::string_view pattern) {
  int found = 0;
  for (size_t at = text.find(pattern); at != text.npos; at = text.find(pattern, at + 1)) found++;
  return found;
}

std::string_view part_between(std::string_view text, std::string_view begin, std::string_view end) {
  const size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

// The SHA-256 of a text in base64, by other functions than those of the library.
std::string sha256_base64(std::string_view text) {
  std::array<unsigned char, 32> sum{};
  EVP_Digest(text.data(), text.size(), sum.data(), nullptr, EVP_sha256(), nullptr);
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string base64;
  for (size_t bit = 0; bit < 8 * sum.size(); bit += 6) {
    unsigned digit = 0;
    for (size_t i = bit; i < bit + 6; i++) digit = 2 * digit + (i < 256 ? sum[i / 8] >> (7 - i % 8) & 1 : 0);
    base64 += digits[digit];
  }
  return base64 + "=";
}

TEST(ServerPage, HasAtMost60KiB) {
  EXPECT_GT(server_page().size(), 20'000u);
  EXPECT_LE(server_page().size(), 60u << 10);
}

TEST(ServerPage, IsOneDocumentWithAStyleAndAScript) {
  const std::string_view page = server_page();
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  for (const std::string_view tag : {"<style>", "</style>", "<script>", "</script>", "<html lang=\"en\">", "<main>"})
    EXPECT_EQ(count_of(page, tag), 1) << tag;
  EXPECT_EQ(count_of(page, "<script"), 1);
  EXPECT_EQ(count_of(page, "{{"), 0);
  EXPECT_EQ(count_of(page, "\n'use strict';\n"), 1);
  EXPECT_EQ(count_of(page, "id=\"grid\""), 1);  // the attention view
}

TEST(ServerPage, PolicyNamesTheScriptAndTheStyleOfThePage) {
  const std::string script = sha256_base64(part_between(server_page(), "<script>", "</script>"));
  const std::string style = sha256_base64(part_between(server_page(), "<style>", "</style>"));
  EXPECT_EQ(page_security_policy(),
            "default-src 'none'; script-src 'sha256-" + script + "'; style-src 'sha256-" + style +
                "'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                "require-trusted-types-for 'script'");
}

TEST(ServerPage, RefersToNoOtherOrigin) {
  const std::string page(server_page());
  for (const std::string_view address : {"http:", "https:", "url(", "@import", "<link", "<img", "<iframe", " src="})
    EXPECT_EQ(count_of(page, address), 0) << address;
}

// The policy would block these, and the page must not need them.
TEST(ServerPage, HasNoHtmlFromStringsNoInlineHandlersAndNoStorage) {
  const std::string page(server_page());
  for (const std::string_view name : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                                      "Function(", "localStorage", "sessionStorage", "indexedDB", "document.cookie"})
    EXPECT_EQ(count_of(page, name), 0) << name;
  const std::string markup = page.substr(page.find("<body>"), page.find("<script>") - page.find("<body>"));
  EXPECT_FALSE(std::regex_search(markup, std::regex(R"(<[^>]*\s(on\w+|style)=)")));
}

TEST(ServerPage, EveryElementThatTheScriptNamesIsThereOnce) {
  const std::string page(server_page());
  const std::regex id(R"(\$\('([\w-]+)'\))");
  int named = 0;
  for (std::sregex_iterator match(page.begin(), page.end(), id), end; match != end; match++, named++)
    EXPECT_EQ(count_of(page, " id=\"" + match->str(1) + "\""), 1) << match->str(1);
  EXPECT_GT(named, 100);
}

}  // namespace
}  // namespace qkv
