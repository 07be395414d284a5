// Reading HTTP requests: what is accepted and refused, in pieces of any size.
#include "serve/http/request_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/serve/read_requests.h"

namespace qkv {
namespace {

using testing::read_all;
using testing::read_pieces;
using testing::ReadRequests;

const std::string kStart = "GET / HTTP/1.1\r\nHost: a\r\n";

int status_of(const std::string& bytes) { return read_all(bytes).status; }

// The status of a request with these lines after the request line and Host.
int status_with(const std::string& lines) { return status_of(kStart + lines + "\r\n"); }

// Lines of JSON that are indented are no trailers that continue, whatever ends them.
TEST(RequestReader, TakesBodiesOfIndentedLines) {
  for (const std::string indent : {" ", "\t"}) {
    const std::string body = "{\r\n" + indent + "\"text\": \"a\"\r\n}";
    const std::string sized =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    const std::string chunked = fmt::format(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n", body.size(), body);
    for (const std::string& bytes : {sized, chunked}) {
      const ReadRequests expected{{"POST / " + body}};
      EXPECT_EQ(read_all(bytes), expected);
      for (size_t i = 1; i < bytes.size(); i++)
        EXPECT_EQ(read_pieces({std::string_view(bytes).substr(0, i), std::string_view(bytes).substr(i)}), expected)
            << i;
    }
  }
}

TEST(RequestReader, ReadsHeadAndBody) {
  RequestReader reader;
  const std::string head =
      "POST /a%20b/?x=1+2&y=%C3%A9&z HTTP/1.1\r\nHost: a.b:80\r\nX-Y:  v w \r\nContent-Length: 3\r\n\r\n";
  EXPECT_EQ(reader.put(head + "abcGET"), head.size());
  ASSERT_TRUE(reader.has_head());
  EXPECT_FALSE(reader.is_done());
  const RequestHead& read = reader.head();
  EXPECT_EQ(read.method, "POST");
  EXPECT_EQ(read.target.path, "/a b");
  EXPECT_EQ(read.target.query, (FormFields{{"x", "1 2"}, {"y", "é"}, {"z", ""}}));
  EXPECT_EQ(read.host, "a.b:80");
  EXPECT_EQ(read.find("x-y"), "v w");
  EXPECT_EQ(read.find("x-z"), "");
  EXPECT_TRUE(read.keep_alive && read.has_body() && !read.chunked);
  EXPECT_EQ(reader.put("abcGET"), 0u);  // until somebody wants the body
  reader.read_body(3);
  EXPECT_EQ(reader.put("abcGET"), 3u);
  EXPECT_TRUE(reader.is_done());
  EXPECT_EQ(reader.body(), "abc");
  EXPECT_EQ(reader.put("GET"), 0u);
}

TEST(RequestReader, ReadsChunksAndDropsTrailers) {
  const ReadRequests read = read_all(
      "\r\nPOST / HTTP/1.1\r\nhOST: a\r\nTransfer-Encoding: "
      "Chunked\r\n\r\n3;n=v;m=\"q\"\r\nabc\r\n00a\r\n0123456789\r\n0\r\n"
      "X-Sum: 9\r\nHost: b\r\n\r\n" +
      kStart + "\r\n");
  EXPECT_EQ(read, (ReadRequests{{"POST / abc0123456789", "GET / "}}));
}

TEST(RequestReader, KeepsConnectionsAsTheVersionSays) {
  const auto keeps = [](const std::string& lines) {
    RequestReader reader;
    reader.put(lines + "\r\n\r\n");
    return reader.head().keep_alive;
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: a"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive"));
}

TEST(RequestReader, RefusesWhatOthersMayFrameDifferently) {
  for (const char* lines : {"Content-Length: 3\r\nContent-Length: 3\r\n",
                            "Content-Length: 3, 3\r\n",
                            "Content-Length: +3\r\n",
                            "Content-Length: -3\r\n",
                            "Content-Length: 0x3\r\n",
                            "Content-Length: 3 \x0b\r\n",
                            "Content-Length:\r\n",
                            "Content-Length: 9223372036854775808\r\n",
                            "Content-Length: 00000000000000000003\r\n",
                            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
                            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                            "Transfer-Encoding: chunked, chunked\r\n",
                            "Transfer-Encoding: chunked, gzip\r\n",
                            "Transfer-Encoding: gzip, chunked\r\n",
                            "Transfer-Encoding : chunked\r\n",
                            "Transfer-Encoding\r\n",
                            " Transfer-Encoding: chunked\r\n",
                            "X: a\r\n b\r\n",
                            "X: a\r\n\tTransfer-Encoding: chunked\r\n",
                            "X: a\rTransfer-Encoding: chunked\r\n",
                            "X: a\nTransfer-Encoding: chunked\r\n",
                            "X: a\r\r\n",
                            "X\x01: a\r\n",
                            "X: \x7f\r\n",
                            ": a\r\n",
                            "X(: a\r\n",
                            "Host: b\r\n",
                            "Host: a\r\n"})
    EXPECT_EQ(status_with(lines), 400) << lines;
  EXPECT_EQ(status_with(std::string("X: a\0b\r\n", 8)), 400);
  for (const char* coding : {"gzip", "xchunked", "chunkedx", "identity",
                             "\x0b"
                             "chunked",
                             "chunked;a=b", "'chunked'", ""})
    EXPECT_GE(status_with(std::string("Transfer-Encoding: ") + coding + "\r\n"), 400) << coding;
  EXPECT_EQ(status_with("Transfer-Encoding: gzip\r\n"), 501);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
}

TEST(RequestReader, RefusesWrongHosts) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 0);
  for (const char* host :
       {"", "a b", "a/b", "a@b", "a:b", "a:", "a:1:2", "a:99999", "[::1", "::1", "[]", "[g]", "a,b", "é"})
    EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\nHost: ") + host + "\r\n\r\n"), 400) << host;
  for (const char* host : {"a", "a-b.c_d:0", "1.2.3.4:65535", "[::1]", "[fe80::1]:80"})
    EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\nHost: ") + host + "\r\n\r\n"), 0) << host;
}

TEST(RequestReader, RefusesWrongRequestLines) {
  const auto status = [](const std::string& line) { return status_of(line + "\r\nHost: a\r\n\r\n"); };
  for (const char* line : {"GET  / HTTP/1.1",
                           "GET / HTTP/1.1 ",
                           " GET / HTTP/1.1",
                           "GET /",
                           "GET",
                           "",
                           "GET /a b HTTP/1.1",
                           "GET\t/ HTTP/1.1",
                           "GET a HTTP/1.1",
                           "GET /é HTTP/1.1",
                           "GET /%00 HTTP/1.1",
                           "GET /%4 HTTP/1.1",
                           "GET /%zz HTTP/1.1",
                           "GET /%ff HTTP/1.1",
                           "GET /a/../b HTTP/1.1",
                           "GET /%2e%2E HTTP/1.1",
                           "GET /./ HTTP/1.1",
                           "GET http:/// HTTP/1.1",
                           "GET ftp://a/ HTTP/1.1",
                           "GET /\" HTTP/1.1",
                           "G@T / HTTP/1.1",
                           "GET / HTTQ/1.1",
                           "GET / http/1.1"})
    EXPECT_EQ(status(line), 400) << line;
  for (const char* line : {"GET / HTTP/2.0", "GET / HTTP/1.2", "GET / HTTP/0.9"}) EXPECT_EQ(status(line), 505) << line;
  EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
  EXPECT_EQ(status("GETS / HTTP/1.1"), 501);
  EXPECT_EQ(status("OPTIONS * HTTP/1.1"), 0);
  EXPECT_EQ(read_all("GET HTTP://b:1?x HTTP/1.1\r\nHost: a\r\n\r\n").requests, std::vector<std::string>{"GET / "});
}

TEST(RequestReader, RefusesTrailersThatContinueOnTheNextLine) {
  const std::string start = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: u\r\n";
  EXPECT_EQ(status_of(start + "\r\n"), 0);
  EXPECT_EQ(status_of(start + " v\r\n\r\n"), 400);
  EXPECT_EQ(status_of(start + "\tv\r\n\r\n"), 400);
}

TEST(RequestReader, RefusesWrongChunks) {
  const auto status = [](const std::string& chunks) {
    return status_of("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks +
                     "0\r\n\r\n0\r\n\r\n");
  };
  for (const char* chunks :
       {"\r\n", "g\r\n", "0x3\r\nabc\r\n", "+3\r\nabc\r\n", "-1\r\n", " 3\r\nabc\r\n", "3 \r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n", "3\r\nabcd\r\n", "3\r\nabc\n0\r\n\r\n", "3\r\nabc0\r\n\r\n", "10000000000000000\r\n",
        "3;\x01\r\nabc\r\n", "3;a=\"\r\nabc\r\n\"\r\n", "3 3\r\nabc\r\n", "3; a=b\r\nabc\r\n", "3;a\t=b\r\nabc\r\n"})
    EXPECT_EQ(status(chunks), 400) << chunks;
  EXPECT_EQ(status("3;" + std::string(300, 'a') + "\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status("3e9\r\n"), 413);
  EXPECT_EQ(status("0\r\nX: " + std::string(10000, 'a') + "\r\n\r\n"), 400);
  EXPECT_EQ(status(std::string(10000, '0')), 400);
}

TEST(RequestReader, LimitsSizes) {
  EXPECT_EQ(status_of("GET /" + std::string(8 << 10, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(status_of("GET /" + std::string(9 << 10, 'a')), 414);
  EXPECT_EQ(status_with("X: " + std::string(16 << 10, 'a') + "\r\n"), 431);
  EXPECT_EQ(status_of(kStart + "X: " + std::string(17 << 10, 'a')), 431);
  std::string lines;
  for (int i = 1; i < 100; i++) lines += "X: a\r\n";
  EXPECT_EQ(status_with(lines), 0);
  EXPECT_EQ(status_with(lines + "X: a\r\n"), 431);
  EXPECT_EQ(read_all(kStart + "Content-Length: 11\r\n\r\n", 10).status, 413);
  EXPECT_EQ(read_all(kStart + "Content-Length: 10\r\n\r\n0123456789", 10).status, 0);
}

TEST(RequestReader, ReadsExpectations) {
  EXPECT_EQ(status_with("Expect: 100-continue\r\n"), 0);
  EXPECT_EQ(status_with("Expect: 200-ok\r\n"), 417);
}

TEST(RequestReader, GivesTheSameForAnyPieces) {
  for (const std::string& bytes : {"\r\nPOST /x?y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                   "chunked\r\n\r\n3;n=v\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n" +
                                       kStart + "Content-Length: 4\r\n\r\n\nb\ryGET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                   kStart + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n",
                                   kStart + "\r\nGET / HTTP/1.1\r\nHost: a\r\n\tx\r\n\r\n"}) {
    const ReadRequests whole = read_all(bytes);
    for (size_t cut = 0; cut <= bytes.size(); cut++) {
      const std::string_view all = bytes;
      EXPECT_EQ(read_pieces({all.substr(0, cut), all.substr(cut)}), whole) << cut;
    }
    std::vector<std::string_view> single;
    for (size_t i = 0; i < bytes.size(); i++) single.push_back(std::string_view(bytes).substr(i, 1));
    EXPECT_EQ(read_pieces(single), whole);
  }
}

}  // namespace
}  // namespace qkv
