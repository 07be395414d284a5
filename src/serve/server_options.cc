#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "qkv/server.h"
#include "serve/engine/served_run.h"

namespace qkv {
namespace {

// A visitor that replaces sizes and times written as text by numbers.
struct QuantityReader {
  nlohmann::json& values;
  const std::string& where;

  template <class Member>
  void operator()(std::string_view, const Member&, const Field&) const {}
  template <class Number>
  void operator()(std::string_view name, Number number, const QuantityField& field) const {
    const auto place = values.find(name);
    if (place == values.end() || !place->is_string()) return;
    try {
      set_quantity(number, place->get_ref<const std::string&>(), field);
    } catch (const Error& error) {
      fail("{}: {} {}", where, name, error.what());
    }
    *place = number;
  }
};

}  // namespace

void check(const ServerOptions& options) {
  check_ranges(options);
  if (options.bodies < options.max_body)
    fail("bodies must be at least max_body, {} (is {})", bytes_text(options.max_body), bytes_text(options.bodies));
  if (!options.runs.empty()) served_runs(options);
  if (options.tls_cert.empty() != options.tls_key.empty())
    fail("tls_cert and tls_key must be given together (only {} is)", options.tls_key.empty() ? "tls_cert" : "tls_key");
}

void merge_server_json(ServerOptions& options, const std::string& text, const std::string& where) {
  ServerOptions merged = options;
  nlohmann::json values = parse_json(text, where);
  if (values.is_object()) visit_fields(merged, QuantityReader{values, where});
  fields_from_json(merged, values.dump(), where, Missing::kept);
  check_ranges(merged, where + ": ");
  options = std::move(merged);
}

}  // namespace qkv
