// Hosts, pages of other sites, and the answers that let listed ones use the server.
#include "serve/http/origin.h"

#include <gtest/gtest.h>

#include <map>

#include "serve/http/http_reply.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;

const std::vector<std::string> kListeners = {"127.0.0.1:8080", "Translate.Example.org:443", "unix:/run/qkv.sock"};

RequestHead request(const std::string& host, std::vector<std::pair<std::string, std::string>> fields = {},
                    const std::string& method = "POST", const std::string& path = "/translate") {
  RequestHead head;
  head.method = method;
  head.target.path = path;
  head.host = host;
  head.fields = std::move(fields);
  return head;
}

// The status of the refusal of a request; 200 if it is not refused.
int status_of(const OriginPolicy& policy, const RequestHead& head) {
  try {
    policy.check(head);
  } catch (const HttpError& error) {
    return error.status;
  }
  return 200;
}

TEST(Host, IsAllowedAsANameOfTheServerAndAsAnAddress) {
  const OriginPolicy policy(kListeners, {"qkv.internal", "Example.net."}, {});
  for (const char* host : {"", "localhost", "localhost:8080", "LOCALHOST.", "localhost.:99", "translate.example.org",
                           "translate.example.org:443", "qkv.internal:1", "example.net", "127.0.0.1", "127.0.0.1:8080",
                           "192.168.7.9", "8.8.8.8:53", "[::1]", "[::1]:8080", "[2001:db8::7]", "[::ffff:10.0.0.1]:80"})
    EXPECT_EQ(status_of(policy, request(host)), 200) << host;
}

TEST(Host, IsMisdirectedWithAnotherName) {
  const OriginPolicy policy(kListeners, {"qkv.internal"}, {});
  for (const char* host : {"example.org", "evil.translate.example.org", "translate.example.org.evil.com",
                           "localhost.evil.com", "evil.localhost", "127.0.0.1.evil.com", "127.1", "0x7f.0.0.1",
                           "2130706433", "[::1", "[localhost]", "unix", "qkv.internal..", "xn--localhost-"})
    EXPECT_EQ(status_of(policy, request(host)), 421) << host;
  expect_contains(error_of([&] { policy.check(request("evil.com:80")); }), "the host \"evil.com\"");
}

TEST(Host, MayBeAnyIfAllAreAllowed) {
  EXPECT_EQ(status_of(OriginPolicy({}, {"*"}, {}), request("anything.example")), 200);
}

TEST(Host, MustBeAllowedByItsNameAlone) {
  for (const std::string host : {"", "a b", "example.org:80", "http://example.org", "*.example.org", "::1"})
    expect_contains(error_of([&] { OriginPolicy({}, {host}, {}); }),
                    "allow_host must be the name of a host without a port, or * (is ");
}

TEST(Origin, IsTheServersOwn) {
  const OriginPolicy policy(kListeners, {"*"}, {});
  EXPECT_EQ(status_of(policy, request("localhost:8080")), 200);
  for (const auto& [host, origin] : {std::pair("localhost:8080", "http://localhost:8080"),
                                     {"LocalHost:8080", "http://localhost:8080"},
                                     {"example.org", "http://example.org"},
                                     {"example.org", "https://example.org"},
                                     {"example.org:80", "http://example.org"},
                                     {"example.org:443", "https://example.org"},
                                     {"[::1]:8080", "http://[::1]:8080"}})
    EXPECT_EQ(status_of(policy, request(host, {{"origin", origin}})), 200) << host << " " << origin;
}

TEST(Origin, IsRefusedIfItIsAnotherSite) {
  const OriginPolicy policy(kListeners, {"*"}, {"https://listed.example"});
  for (const auto& [host, origin] : {std::pair("localhost:8080", "http://localhost:3000"),
                                     {"localhost:8080", "http://localhost"},
                                     {"localhost", "http://localhost:8080"},
                                     {"localhost:8080", "http://evil.com"},
                                     {"localhost:8080", "http://evil.com:8080"},
                                     {"example.org:80", "https://example.org"},
                                     {"localhost:8080", "null"},
                                     {"localhost:8080", "file://"},
                                     {"localhost:8080", "http://localhost:8080/"},
                                     {"localhost:8080", "http://localhost:8080 http://evil.com"},
                                     {"localhost:8080", "localhost:8080"},
                                     {"localhost:8080", "http://listed.example"},
                                     {"localhost:8080", "https://listed.example.evil.com"},
                                     {"localhost:8080", "https://listed.example:444"},
                                     {"", "http://evil.com"}})
    for (const char* method : {"GET", "POST", "OPTIONS"})
      EXPECT_EQ(status_of(policy, request(host, {{"origin", origin}}, method)), 403) << host << " " << origin;
}

TEST(Origin, IsComparedByTheBrowserWhereAProxyChangesTheHost) {
  const OriginPolicy policy({}, {}, {});
  const auto fields = [](const char* site) {
    return std::vector<std::pair<std::string, std::string>>{{"origin", "https://example.org"},
                                                            {"sec-fetch-site", site}};
  };
  EXPECT_EQ(status_of(policy, request("127.0.0.1:8080", fields("same-origin"))), 200);
  EXPECT_EQ(status_of(policy, request("127.0.0.1:8080", fields("same-site"))), 403);
  EXPECT_EQ(status_of(policy, request("127.0.0.1:8080", fields("cross-site"))), 403);
  EXPECT_EQ(status_of(policy, request("127.0.0.1:8080", fields("anything"))), 403);
}

TEST(Origin, IsRefusedIfTheBrowserReportsAnotherSite) {
  const OriginPolicy policy({}, {}, {"https://listed.example"});
  for (const char* method : {"GET", "POST"}) {
    EXPECT_EQ(status_of(policy, request("localhost", {{"sec-fetch-site", "cross-site"}}, method)), 403);
    EXPECT_EQ(status_of(policy, request("localhost", {{"sec-fetch-site", "none"}}, method)), 200);
    EXPECT_EQ(status_of(policy, request("localhost", {{"sec-fetch-site", "same-site"}}, method)), 200);
  }
  EXPECT_EQ(status_of(policy, request("localhost", {{"origin", "http://localhost"}, {"sec-fetch-site", "cross-site"}})),
            403);
  EXPECT_EQ(
      status_of(policy, request("localhost", {{"origin", "https://listed.example"}, {"sec-fetch-site", "cross-site"}})),
      200);
}

TEST(Origin, MayLinkToThePage) {
  const OriginPolicy policy({}, {}, {});
  const auto status = [&](const char* method, const char* path, const char* mode, const char* destination) {
    return status_of(
        policy, request("localhost",
                        {{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", mode}, {"sec-fetch-dest", destination}},
                        method, path));
  };
  EXPECT_EQ(status("GET", "/", "navigate", "document"), 200);
  EXPECT_EQ(status("POST", "/", "navigate", "document"), 403);
  EXPECT_EQ(status("GET", "/v1/models", "navigate", "document"), 403);
  EXPECT_EQ(status("GET", "/", "navigate", "iframe"), 403);
  EXPECT_EQ(status("GET", "/", "no-cors", "image"), 403);
}

TEST(Origin, MustBeListedAsSchemeAndHost) {
  for (const std::string origin :
       {"*", "", "null", "example.org", "https://", "https://example.org/", "https://example.org/a",
        "https://*.example.org", "https://user@example.org", "https://example.org:x", "://example.org",
        "ht tp://example.org", "https:example.org"})
    expect_contains(error_of([&] { OriginPolicy({}, {}, {origin}); }),
                    "cors_origin must be SCHEME://HOST or SCHEME://HOST:PORT (is ");
  const OriginPolicy policy({}, {}, {"HTTPS://Listed.Example:443", "chrome-extension://abcdef", "http://[::1]:3000"});
  for (const char* origin : {"https://listed.example", "chrome-extension://abcdef", "http://[::1]:3000"})
    EXPECT_EQ(status_of(policy, request("localhost", {{"origin", origin}})), 200) << origin;
}

std::map<std::string, std::string> map_of(const std::vector<std::pair<std::string, std::string>>& headers) {
  std::map<std::string, std::string> map(headers.begin(), headers.end());
  EXPECT_EQ(map.size(), headers.size());
  return map;
}

TEST(Cors, LetsListedPagesReadAnswers) {
  const OriginPolicy policy({}, {}, {"https://listed.example"});
  auto headers = map_of(policy.headers(request("localhost", {{"origin", "https://listed.example"}})));
  EXPECT_EQ(headers["Access-Control-Allow-Origin"], "https://listed.example");
  EXPECT_EQ(headers["Vary"], "Origin");
  EXPECT_EQ(headers.count("Access-Control-Allow-Credentials"), 0u);
  for (const auto& fields : {std::vector<std::pair<std::string, std::string>>(), {{"origin", "http://localhost"}}}) {
    headers = map_of(policy.headers(request("localhost", fields)));
    EXPECT_EQ(headers, (std::map<std::string, std::string>{{"Vary", "Origin"}}));
  }
  EXPECT_TRUE(OriginPolicy({}, {}, {}).headers(request("localhost", {{"origin", "http://localhost"}})).empty());
}

TEST(Cors, AnswersPreflightsOfListedPages) {
  const OriginPolicy policy({}, {}, {"https://listed.example"});
  RequestHead head = request("localhost",
                             {{"origin", "https://listed.example"},
                              {"sec-fetch-site", "cross-site"},
                              {"access-control-request-method", "POST"},
                              {"access-control-request-headers", "authorization,content-type, x-stainless-os"}},
                             "OPTIONS");
  EXPECT_EQ(status_of(policy, head), 200);
  const auto reply = policy.preflight(head, "GET, POST");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "");
  auto headers = map_of(reply->headers);
  EXPECT_EQ(headers["Access-Control-Allow-Origin"], "https://listed.example");
  EXPECT_EQ(headers["Access-Control-Allow-Methods"], "GET, POST");
  EXPECT_EQ(headers["Access-Control-Allow-Headers"], "authorization,content-type, x-stainless-os");
  EXPECT_EQ(headers.count("Access-Control-Allow-Credentials"), 0u);
  expect_contains(headers["Vary"], "Origin");
  head.fields[3].second = "a: b";
  EXPECT_EQ(map_of(policy.preflight(head, "GET")->headers).count("Access-Control-Allow-Headers"), 0u);
  head.fields[3].second = std::string(5000, 'a');
  EXPECT_EQ(map_of(policy.preflight(head, "GET")->headers).count("Access-Control-Allow-Headers"), 0u);
}

TEST(Cors, AnswersNoOtherPreflight) {
  const OriginPolicy policy({}, {}, {"https://listed.example"});
  const std::pair<std::string, std::string> listed = {"origin", "https://listed.example"},
                                            asks = {"access-control-request-method", "POST"};
  EXPECT_FALSE(policy.preflight(request("localhost", {listed, asks}, "POST"), "POST"));
  EXPECT_FALSE(policy.preflight(request("localhost", {listed}, "OPTIONS"), "POST"));
  EXPECT_FALSE(policy.preflight(request("localhost", {asks}, "OPTIONS"), "POST"));
  const RequestHead other = request("localhost", {{"origin", "https://other.example"}, asks}, "OPTIONS");
  EXPECT_FALSE(policy.preflight(other, "POST"));
  EXPECT_EQ(status_of(policy, other), 403);
}

}  // namespace
}  // namespace qkv
