#include "serve/api/families.h"

#include "serve/api/gorse_routes.h"
#include "serve/api/libre_routes.h"
#include "serve/engine/api_family.h"

namespace qkv {
namespace {

template <class State>
std::unique_ptr<FamilyState> make(const ServerOptions& options) {
  return std::make_unique<State>(options);
}

}  // namespace

std::span<const ApiFamily> api_families() {
  static const ApiFamily all[] = {{classify_routes},
                                  {gorse_routes, make<GorseState>},
                                  {libre_routes, make<LibreState>},
                                  {native_routes},
                                  {openai_routes},
                                  {site_routes},
                                  {tei_routes},
                                  {token_routes}};
  return all;
}

}  // namespace qkv
