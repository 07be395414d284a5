// The route /metrics, among the others or on an address of its own.
#pragma once

#include <memory>
#include <string>

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

}  // namespace qkv
