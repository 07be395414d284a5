// The routes by which the server describes itself: its page, its metrics, its health and the list of its routes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/http/http_server.h"

namespace qkv {

class Service;

// Answers /metrics on an address of its own, without keys.
class MetricsHandler : public HttpHandler {
 public:
  explicit MetricsHandler(const Service& service) : service_(service) {}

  void admit(const RequestHead& head, const std::string& client, Grant& grant) override;
  void handle(std::shared_ptr<Exchange> exchange) override;
  HttpReply refusal(const Refusal& refused) override;

 private:
  const Service& service_;
};

// Returns the page at "/": translation with attention maps, recommendations and text generation in the browser. It is
// one HTML file of at most 60 KiB, made of the files in src/serve/api/assets and of the attention view in
// src/eval/assets. It lives as long as the program.
std::string_view server_page();

// Returns the value of the Content-Security-Policy that must be sent with the page: no source of anything but the
// page's own script and style, which are named by their SHA-256, and requests to the server that the page came from.
std::string page_security_policy();

}  // namespace qkv
