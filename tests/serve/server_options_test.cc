// The options of the server: their defaults, their ranges, and files with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "core/fields.h"
#include "qkv/server.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

ServerOptions merged(const std::string& text) {
  ServerOptions options;
  merge_server_json(options, text, "serve.json");
  return options;
}

std::string error_in(const std::string& text) {
  ServerOptions options;
  const std::string error = error_of([&] { merge_server_json(options, text, "serve.json"); });
  EXPECT_EQ(options, ServerOptions());
  EXPECT_TRUE(error.starts_with("serve.json: ")) << error;
  return error.substr(std::min<size_t>(12, error.size()));
}

TEST(ServerOptions, AreValidByDefault) { check(ServerOptions()); }

TEST(ServerOptions, DescribeEveryOptionInOneLine) {
  ServerOptions options;
  std::set<std::string_view> names;
  visit_fields(options, [&](std::string_view name, auto&, const Field& field) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(field.help.empty()) << name;
    EXPECT_EQ(field.help.find('\n'), std::string_view::npos) << name;
    EXPECT_NE(field.help.back(), '.') << name;
    EXPECT_FALSE(field.group.empty()) << name;
  });
  std::istringstream words(
      "runs listen metrics_listen tls_cert tls_key pivot languages titles glossary chat_template embed threads workers "
      "rows cache "
      "queue_items queue_tokens client_items max_body bodies max_text max_texts max_inputs max_tokens max_beam "
      "deadline "
      "max_connections header_timeout body_timeout idle_timeout write_timeout api_keys allow_host cors_origin "
      "trust_proxy drain_delay drain_timeout log no_page suggestions events no_files");
  const std::set<std::string, std::less<>> wanted{std::istream_iterator<std::string>(words), {}};
  EXPECT_TRUE(std::equal(names.begin(), names.end(), wanted.begin(), wanted.end()));
}

TEST(ServerOptions, AreReadFromJson) {
  const ServerOptions options = merged(R"({
    "runs": ["en-de=runs/m30k", "lm"], "listen": ["0.0.0.0:80", "unix:/run/qkv.sock"], "max_body": "4M", "cache": 2097152,
    "deadline": "1500 ms", "header_timeout": 3, "idle_timeout": 2.5, "log": "json", "no_page": true, "queue_items": 7,
    "cors_origin": ["https://example.org"], "drain_delay": "5s"})");
  EXPECT_EQ(options.runs, (std::vector<std::string>{"en-de=runs/m30k", "lm"}));
  EXPECT_EQ(options.listen, (std::vector<std::string>{"0.0.0.0:80", "unix:/run/qkv.sock"}));
  EXPECT_EQ(options.max_body, 4 << 20);
  EXPECT_EQ(options.cache, 2 << 20);
  EXPECT_EQ(options.deadline, 1.5);
  EXPECT_EQ(options.header_timeout, 3);
  EXPECT_EQ(options.idle_timeout, 2.5);
  EXPECT_EQ(options.log, LogFormat::json);
  EXPECT_TRUE(options.no_page);
  EXPECT_EQ(options.queue_items, 7);
  EXPECT_EQ(options.cors_origin, std::vector<std::string>{"https://example.org"});
  EXPECT_EQ(options.drain_delay, 5);
  EXPECT_EQ(options.body_timeout, 30) << "what is not given keeps its value";
}

TEST(ServerOptions, AreReadAgainAsTheyAreWritten) {
  ServerOptions options;
  options.runs = {"a"};
  options.max_body = 12345;
  options.deadline = 0.125;
  options.log = LogFormat::none;
  EXPECT_EQ(merged(json_from_fields(options)), options);
  EXPECT_EQ(merged("{}"), ServerOptions());
}

TEST(ServerOptions, RefuseJsonThatDoesNotFit) {
  EXPECT_EQ(error_in("[]"), "must be a JSON object (is an array)");
  EXPECT_NE(error_in("{"), "");
  EXPECT_EQ(error_in(R"({"max_boddy": 1})"), "unknown name \"max_boddy\"; did you mean \"max_body\"?");
  EXPECT_EQ(error_in(R"({"max_body": "2MB"})"),
            "max_body must be a size in bytes, such as 500, 64K, 2M or 1G (is \"2MB\")");
  EXPECT_EQ(error_in(R"({"max_body": "2G"})"), "max_body must be between 1K and 1G (is \"2G\")");
  EXPECT_EQ(error_in(R"({"max_body": 5})"), "max_body must be between 1024 and 1073741824 (is 5)");
  EXPECT_EQ(error_in(R"({"max_body": [5]})"), "max_body must be an integer (is an array)");
  EXPECT_EQ(error_in(R"({"deadline": "soon"})"),
            "deadline must be a time such as 5, 500ms, 60s, 2min or 1h (is \"soon\")");
  EXPECT_EQ(error_in(R"({"deadline": "0"})"), "deadline must be above 0s and at most 24h (is \"0\")");
  EXPECT_EQ(error_in(R"({"deadline": 0})"), "deadline must be above 0 and at most 86400 (is 0)");
  EXPECT_EQ(error_in(R"({"queue_items": "256"})"), "queue_items must be an integer (is \"256\")");
  EXPECT_EQ(error_in(R"({"listen": "127.0.0.1:80"})"), "listen must be an array of strings (is \"127.0.0.1:80\")");
  EXPECT_EQ(error_in(R"({"log": "xml"})"), "log must be one of text, json, none (is \"xml\")");
}

TEST(ServerOptions, MustFitTogether) {
  ServerOptions options;
  options.bodies = 1 << 20;
  EXPECT_EQ(error_of([&] { check(options); }), "bodies must be at least max_body, 2M (is 1M)");
  options = {};
  options.tls_key = "key.pem";
  EXPECT_EQ(error_of([&] { check(options); }), "tls_cert and tls_key must be given together (only tls_key is)");
  options = {};
  options.max_beam = 2000;
  EXPECT_EQ(error_of([&] { check(options); }), "max_beam must be between 1 and 1024 (is 2000)");
}

}  // namespace
}  // namespace qkv
