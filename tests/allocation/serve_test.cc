// A server whose allocations fail: every request is answered or its connection closed, the next one is answered as
// before, and nothing is left of the one that failed.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <thread>

#include "tests/allocation/watched_server.h"

namespace qkv {
namespace {

using testing::FailingAllocation;
using testing::WatchedServer;

struct Request {
  const char* name;
  std::string bytes;
  int status = 200;
};

Request get(const char* name, const char* path) {
  return {name, fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)};
}

Request post(const char* name, const char* path, const std::string& body) {
  return {name, fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: test\r\n"
                            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                            path, body.size(), body)};
}

std::vector<Request> requests() {
  const std::string events = R"([{"FeedbackType": "a", "UserId": "u", "ItemId": "i1", "Timestamp": "2020-01-01"}])";
  return {
      get("health", "/health"),
      post("translate", "/v1/translate",
           R"({"text": ["the dog", "a cat"], "beam": 2, "coverage_penalty": 0.2, "word_scores": true})"),
      post("stream of tokens", "/v1/translate", R"({"text": "the dog", "beam": 1, "max_length": 4, "stream": true})"),
      post("completions", "/v1/completions",
           R"({"prompt": "ab", "seed": 1, "max_tokens": 3, "logprobs": 2, "stream": true})"),
      post("embeddings", "/v1/embeddings", R"({"model": "enc", "input": ["the dog", "a"]})"),
      post("attend", "/v1/attend", R"({"model": "lm", "text": "ab", "generate": 2})"),
      post("HTML", "/translate", R"({"q": "<b>the dog</b>", "source": "en", "target": "de", "format": "html"})"),
      post("feedback", "/api/feedback", events),
      {"malformed", "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", 400}};
}

// How many allocations fail of a request and a thread, each by itself; all if there are no more.
int64_t most_failures() {
  const char* given = std::getenv("QKV_ALLOCATIONS");
  return given ? std::atoll(given) : 20;
}

// Returns an answer without what is new in each.
std::string settled(const std::string& answer) {
  static const std::regex fresh("Date: [^\r]*|X-Request-Id: [^\r]*|\"created\":[0-9]+");
  return std::regex_replace(answer, fresh, "");
}

int status_of(const std::string& answer) { return answer.size() > 12 ? std::atoi(answer.c_str() + 9) : 0; }

// Whether an answer is the wanted one as far as it goes: a connection may be closed, and a stream end with an error.
bool is_right(const std::string& answer, const std::string& wanted) {
  const size_t error = answer.find("data: {\"error\"");
  const size_t size = error == answer.npos ? answer.size() : answer.rfind("\r\n", error - 3) + 2;  // before its chunk
  return wanted.starts_with(answer.substr(0, size));
}

enum class Failing { one, all };

// Lets allocations of a thread fail, one at a time or all from one on, during a request.
void expect_survival(WatchedServer& server, const Request& request, FailingAllocation& thread, Failing failing) {
  SCOPED_TRACE(request.name);
  const auto ask = [&] {
    const std::string answer = settled(server.ask(request.bytes));
    EXPECT_TRUE(server.becomes_idle());
    return answer;
  };
  const std::string wanted = ask();
  ASSERT_EQ(status_of(wanted), request.status) << wanted;
  thread.arm(0);
  ask();
  const int64_t count = thread.count(), stride = std::max<int64_t>(1, count / most_failures());
  for (int64_t number = 1; number <= count; number += stride) {
    SCOPED_TRACE(number);
    thread.arm(number, failing == Failing::all);
    const std::string answer = ask();
    thread.arm(0);
    const int status = status_of(answer);
    EXPECT_TRUE(status == 0 || status == 500 || status == 503 || (status == request.status && is_right(answer, wanted)))
        << answer;
    ASSERT_EQ(ask(), wanted);
  }
}

TEST(ServerWithoutMemory, SurvivesOnTheIoThread) {
  WatchedServer server;
  for (const Request& request : requests()) expect_survival(server, request, server.io, Failing::one);
}

TEST(ServerWithoutMemory, SurvivesOnThePrepareThread) {
  WatchedServer server;
  for (const Failing failing : {Failing::one, Failing::all})
    for (const Request& request : requests()) expect_survival(server, request, server.prepare, failing);
}

TEST(ServerWithoutMemory, SurvivesOnAComputeThread) {
  for (const int64_t threads : {1, 2}) {
    WatchedServer server(threads);
    for (const Failing failing : {Failing::one, Failing::all})
      for (const Request& request : requests()) expect_survival(server, request, server.compute, failing);
  }
}

TEST(ServerWithoutMemory, SurvivesOnTheThreadOfTheEventsFile) {
  WatchedServer server;
  for (const Failing failing : {Failing::one, Failing::all})
    for (const Request& request : requests())
      if (request.name == std::string("feedback")) expect_survival(server, request, server.file, failing);
}

TEST(LogWithoutMemory, CountsTheLinesThatItDrops) {
  const testing::TempDir directory;
  testing::spill(directory / "log", "");
  const int file = ::open((directory / "log").c_str(), O_WRONLY);
  FailingAllocation memory;
  {
    RequestLog log(LogFormat::text, file, {.last_writes = std::chrono::milliseconds(60'000)});
    std::thread([&] {
      memory.watch();
      for (int i = 0; i < 20; i++) {
        memory.arm(i % 2);  // that of the queue
        log.write({});
      }
    }).join();
    EXPECT_EQ(log.dropped(), 10);
  }
  ::close(file);
  const std::string lines = testing::slurp(directory / "log");
  EXPECT_EQ(std::ranges::count(lines, '\n'), 11);
  EXPECT_NE(lines.find("dropped_lines=10\n"), lines.npos);
}

}  // namespace
}  // namespace qkv
