// GET /openapi.json: a description of all routes. tests/program/openapi_test.py compares it with the tables.
#include "serve/api/assets/openapi.json.h"
#include "serve/api/families.h"
#include "serve/engine/route.h"

namespace qkv {
namespace {

HttpReply openapi(const Service&, const Exchange&) { return {200, "application/json", std::string(kOpenapiJson)}; }

}  // namespace

std::span<const Route> openapi_routes() {
  static const Route routes[] = {
      {"GET", "/openapi.json", Family::native, nullptr, BodyType::none, ModelUse::none, true, openapi},
  };
  return routes;
}

}  // namespace qkv
