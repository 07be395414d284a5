#include "serve/api/site.h"

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
#include "serve/api/assets/openapi.json.h"
#include "serve/api/assets/page.css.h"
#include "serve/api/assets/page.html.h"
#include "serve/api/assets/page.js.h"
#include "serve/api/assets/recommend.js.h"
#include "serve/api/assets/requests.js.h"
#include "serve/api/assets/translate.js.h"
#include "serve/api/assets/translate_attention.js.h"
#include "serve/api/assets/translate_choices.js.h"
#include "serve/api/assets/translate_document.js.h"
#include "serve/api/families.h"
#include "serve/engine/route.h"
#include "serve/engine/service.h"
#include "serve/http/exchange.h"

namespace qkv {
namespace {

// ---- Health: whether the server lives, and whether it is ready. These routes never wait.

HttpReply unavailable(const char* message) {
  return {503, "application/json",
          fmt::format(R"({{"error":{{"code":503,"message":"{}","type":"unavailable_error"}}}})", message)};
}

HttpReply health_live(const Service& service, const Exchange&) {
  if (service.is_stuck()) return unavailable("A step has taken a minute");
  return {200, "application/json", R"({"status":"ok"})"};
}

HttpReply health_ready(const Service& service, const Exchange& exchange) {
  if (service.is_loading()) return unavailable("Loading model");
  if (service.is_draining()) return unavailable("Draining");
  return health_live(service, exchange);
}

HttpReply ping(const Service&, const Exchange&) { return {200, "text/plain; charset=utf-8", "pong\n"}; }

// In the form of Gorse.
HttpReply gorse_health(const Service& service, const Exchange&) {
  const bool ready = !service.is_loading() && !service.is_draining();
  return {ready ? 200 : 503, "application/json",
          fmt::format(R"({{"Ready":{},"DataStoreError":null,"CacheStoreError":null,"DataStoreConnected":{},)"
                      R"("CacheStoreConnected":{}}})",
                      ready, ready, ready)};
}

HttpReply gorse_live(const Service&, const Exchange&) {
  return {200, "application/json",
          R"({"Ready":true,"DataStoreError":null,"CacheStoreError":null,"DataStoreConnected":true,)"
          R"("CacheStoreConnected":true})"};
}

// ---- Metrics

HttpReply metrics_reply(const Service& service) {
  return {200, "text/plain; version=0.0.4; charset=utf-8", service.metrics_text()};
}

HttpReply answer_metrics(const Service& service, const Exchange&) {
  if (!service.options().metrics_listen.empty()) return error_reply(Family::native, HttpError(404, "no such route"));
  return metrics_reply(service);
}

// ---- GET /openapi.json: a description of all routes. tests/program/openapi_test.py compares it with the tables.

HttpReply openapi(const Service&, const Exchange&) { return {200, "application/json", std::string(kOpenapiJson)}; }

// ---- The page

// Returns a style or a script without indentation, empty lines, lines that are comments, and comments after two spaces.
std::string compact(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    line = line.substr(0, line.find("  // "));
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    if (!line.empty() && !line.starts_with("//")) lines.append(line).append("\n");
  }
  return lines;
}

// Returns a style without the spaces that separate nothing. It has no texts in quotation marks with such spaces.
std::string compact_style(std::string_view text) {
  std::string style;
  for (const char c : compact(text)) {
    if (c == ' ' && !style.empty() && std::string_view(":;,").find(style.back()) != std::string_view::npos) continue;
    if (c == '{' && style.ends_with(' ')) style.pop_back();
    style += c;
  }
  return style;
}

std::string assemble() {
  const std::string style = compact_style(kAttentionViewCss) + compact_style(kPageCss);
  std::string script;
  for (const std::string_view part : {kAttentionViewJs, kRequestsJs, kPageJs, kTranslateJs, kTranslateAttentionJs,
                                      kTranslateChoicesJs, kTranslateDocumentJs, kRecommendJs, kGenerateJs})
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

HttpReply answer_page(const Service& service, const Exchange&) {
  if (service.options().no_page) return error_reply(Family::native, HttpError(404, "the page is off"));
  return {200,
          "text/html; charset=utf-8",
          std::string(server_page()),
          {{"Content-Security-Policy", page_security_policy()},
           {"Referrer-Policy", "no-referrer"},
           {"Cross-Origin-Opener-Policy", "same-origin"}}};
}

}  // namespace

void MetricsHandler::admit(const RequestHead& head, const std::string&, Grant&) {
  if (head.target.path != "/metrics") refuse(404, "no such route");
  if (head.method != "GET" && head.method != "HEAD") refuse(405, "the route takes GET");
}

void MetricsHandler::handle(std::shared_ptr<Exchange> exchange) { exchange->reply(metrics_reply(service_)); }

HttpReply MetricsHandler::refusal(const Refusal& refused) { return error_reply(Family::native, refused.error); }

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

std::span<const Route> site_routes() {
  static const Route routes[] = {
      {"GET", "/health", Family::native, nullptr, BodyType::none, ModelUse::none, true, health_ready},
      {"GET", "/health/ready", Family::native, nullptr, BodyType::none, ModelUse::none, true, health_ready},
      {"GET", "/health/live", Family::native, nullptr, BodyType::none, ModelUse::none, true, health_live},
      {"GET", "/ping", Family::native, nullptr, BodyType::none, ModelUse::none, true, ping},
      {"GET", "/api/health/ready", Family::gorse, nullptr, BodyType::none, ModelUse::none, true, gorse_health},
      {"GET", "/api/health/live", Family::gorse, nullptr, BodyType::none, ModelUse::none, true, gorse_live},
      {"GET", "/metrics", Family::native, nullptr, BodyType::none, ModelUse::none, false, answer_metrics},
      {"GET", "/openapi.json", Family::native, nullptr, BodyType::none, ModelUse::none, true, openapi},
      {"GET", "/", Family::native, nullptr, BodyType::none, ModelUse::none, true, answer_page},
  };
  return routes;
}

}  // namespace qkv
