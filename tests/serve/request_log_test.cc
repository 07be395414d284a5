// The log of requests: its lines, its limits, logs that block or are closed, and the header traceparent.
#include "serve/metrics/request_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/system/file_descriptor.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;

RequestRecord some_record() {
  RequestRecord record;
  record.time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'782'907'200'042));
  record.id = "5f0c";
  record.client = "10.0.0.7";
  record.method = "POST";
  record.route = "/v1/translate";
  record.model = "en-de";
  record.outcome = "done";
  record.trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  record.span = "00f067aa0ba902b7";
  record.status = 200;
  record.received_bytes = 120;
  record.sent_bytes = 340;
  record.texts = 1;
  record.input_tokens = 7;
  record.output_tokens = 9;
  record.seconds = 0.04012345;
  record.waiting_seconds = 0.0004;
  record.first_seconds = 0.0125;
  return record;
}

RequestRecord numbered(int number) {
  RequestRecord record;
  record.id = std::to_string(number);
  return record;
}

TEST(LogLine, IsTextOfNamesAndValues) {
  EXPECT_EQ(
      log_line(some_record(), LogFormat::text),
      "time=2026-07-01T12:00:00.042Z id=5f0c client=10.0.0.7 method=POST route=/v1/translate code=200 "
      "model=en-de received_bytes=120 sent_bytes=340 texts=1 input_tokens=7 output_tokens=9 waiting_ms=0.4 "
      "first_token_ms=12.5 ms=40.123 outcome=done trace=4bf92f3577b34da6a3ce929d0e0e4736 span=00f067aa0ba902b7\n");
}

TEST(LogLine, IsJsonWithTheSameNames) {
  EXPECT_EQ(log_line(some_record(), LogFormat::json),
            "{\"time\":\"2026-07-01T12:00:00.042Z\",\"id\":\"5f0c\",\"client\":\"10.0.0.7\",\"method\":\"POST\","
            "\"route\":\"/v1/translate\",\"code\":200,\"model\":\"en-de\",\"received_bytes\":120,\"sent_bytes\":340,"
            "\"texts\":1,\"input_tokens\":7,\"output_tokens\":9,\"waiting_ms\":0.4,\"first_token_ms\":12.5,"
            "\"ms\":40.123,\"outcome\":\"done\",\"trace\":\"4bf92f3577b34da6a3ce929d0e0e4736\","
            "\"span\":\"00f067aa0ba902b7\"}\n");
}

TEST(LogLine, LeavesOutWhatARequestDoesNotHave) {
  RequestRecord record;
  record.status = 404;
  EXPECT_EQ(log_line(record, LogFormat::text),
            "time=1970-01-01T00:00:00.000Z code=404 received_bytes=0 sent_bytes=0 texts=0 input_tokens=0 "
            "output_tokens=0 ms=0.0\n");
  EXPECT_EQ(log_line(record, LogFormat::none), "");
}

TEST(LogLine, IsOneLineOfPrintableCharactersWhateverTheClientSends) {
  RequestRecord record = some_record();
  std::string hostile;
  for (int c = 0; c < 256; c++) hostile += static_cast<char>(c);
  for (const std::string& value : {hostile, std::string("a\r\nid=forged"), std::string("\x1b[2Jx"),
                                   std::string("a b=\"c\""), std::string("\xc2\x9b\xe2\x80\xa8")}) {
    record.client = record.id = record.model = value;
    for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
      const std::string line = log_line(record, format);
      EXPECT_EQ(line.find('\n'), line.size() - 1);
      for (const char c : line.substr(0, line.size() - 1)) EXPECT_TRUE(c >= ' ' && c < '\x7f') << int(c);
    }
    EXPECT_TRUE(json::parse(log_line(record, LogFormat::json)).contains("client"));
  }
  EXPECT_NE(log_line(record, LogFormat::text).find("client=\"\\u009b\\u2028\" "), std::string::npos);
}

TEST(LogLine, CutsLongTextOfAClient) {
  RequestRecord record = some_record();
  record.id = record.client = record.model = record.method = std::string(100'000, '\n');
  EXPECT_LT(log_line(record, LogFormat::text).size(), 4096u);
  EXPECT_LT(log_line(record, LogFormat::json).size(), 4096u);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// At the end of a log, its lines have as long as a busy machine needs.
constexpr std::chrono::milliseconds kPatience{60'000};

// A file that a log writes to.
class LogFile {
 public:
  int descriptor() const { return file_.get(); }
  std::vector<std::string> lines() const { return lines_of(testing::slurp(path_)); }

 private:
  testing::TempDir directory_;
  const std::string path_ = directory_ / "log";
  FileDescriptor file_{::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
};

TEST(RequestLog, WritesALineForEachRequestInTheirOrder) {
  const LogFile file;
  {
    RequestLog log(LogFormat::json, file.descriptor(), {.last_writes = kPatience});
    for (int i = 0; i < 500; i++) log.write(numbered(i));
  }
  const std::vector<std::string> lines = file.lines();
  ASSERT_EQ(lines.size(), 500u);
  for (size_t i = 0; i < lines.size(); i++) EXPECT_EQ(json::parse(lines[i])["id"], std::to_string(i));
}

TEST(RequestLog, WritesNothingWithoutAFormat) {
  const LogFile file;
  RequestLog(LogFormat::none, file.descriptor()).write(some_record());
  EXPECT_TRUE(file.lines().empty());
}

TEST(RequestLog, CountsLinesBeyondTheLimitOfASecond) {
  const LogFile file;
  std::atomic<int64_t> milliseconds = 5'000;
  const auto now = [&] { return RequestLog::Clock::time_point(std::chrono::milliseconds(milliseconds)); };
  {
    RequestLog log(LogFormat::json, file.descriptor(), {1000, 1 << 20, kPatience}, now);
    for (int i = 0; i < 1400; i++) log.write(numbered(i));
    milliseconds = 5'999;
    for (int i = 1400; i < 1500; i++) log.write(numbered(i));
    EXPECT_EQ(log.dropped(), 500);
    milliseconds = 6'000;
    for (int i = 1500; i < 1600; i++) log.write(numbered(i));
    EXPECT_EQ(log.dropped(), 500);
  }
  const std::vector<std::string> lines = file.lines();
  ASSERT_EQ(lines.size(), 1101u);
  EXPECT_EQ(json::parse(lines[999])["id"], "999");
  EXPECT_EQ(json::parse(lines[1000])["dropped_lines"], 500);
  EXPECT_EQ(json::parse(lines[1001])["id"], "1500");
}

TEST(RequestLog, ReportsDroppedLinesAtItsEnd) {
  const LogFile file;
  {
    RequestLog log(LogFormat::text, file.descriptor(), {.lines_per_second = 10, .last_writes = kPatience},
                   [] { return RequestLog::Clock::time_point(); });
    for (int i = 0; i < 25; i++) log.write(numbered(i));
  }
  const std::vector<std::string> lines = file.lines();
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_NE(lines[10].find(" dropped_lines=15"), std::string::npos);
}

// A pipe that holds a few lines, until it is read.
struct FullPipe {
  FullPipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read = FileDescriptor(ends[0]);
    write = FileDescriptor(ends[1]);
    ::fcntl(write.get(), F_SETPIPE_SZ, 4096);
  }
  FileDescriptor read, write;
};

TEST(RequestLog, NeverWaitsForALogThatBlocks) {
  const FullPipe pipe;
  int64_t dropped = 0;
  {
    RequestLog log(LogFormat::text, pipe.write.get(), {1'000'000, 100, std::chrono::milliseconds(1)});
    for (int i = 0; i < 10'000; i++) log.write(some_record());
    dropped = log.dropped();
  }
  EXPECT_GT(dropped, 9'000);
}

TEST(RequestLog, ContinuesAfterALogHasBlocked) {
  FullPipe pipe;
  std::string text;
  std::thread reader;
  int64_t dropped = 0;
  {
    RequestLog log(LogFormat::json, pipe.write.get(), {1'000'000, 100, kPatience});
    for (int i = 0; i < 10'000; i++) log.write(some_record());
    dropped = log.dropped();
    reader = std::thread([&] {
      char bytes[1000];
      for (ssize_t size; (size = ::read(pipe.read.get(), bytes, sizeof(bytes))) > 0;)
        text.append(bytes, static_cast<size_t>(size));
    });
  }
  pipe.write.close();
  reader.join();
  int64_t written = 0, reported = 0;
  for (const std::string& line : lines_of(text)) {
    const json fields = json::parse(line);
    fields.contains("dropped_lines") ? reported += fields["dropped_lines"].get<int64_t>() : written++;
  }
  EXPECT_EQ(reported, dropped);
  EXPECT_EQ(written + reported, 10'000);
}

TEST(RequestLog, SurvivesALogThatIsClosed) {
  ::signal(SIGPIPE, SIG_IGN);
  FullPipe pipe;
  pipe.read.close();
  for (const int file : {pipe.write.get(), -1}) {
    RequestLog log(LogFormat::text, file, {.last_writes = std::chrono::milliseconds(1)});
    for (int i = 0; i < 100; i++) log.write(some_record());
  }
}

TEST(RequestLog, TakesRequestsOfSeveralThreads) {
  const LogFile file;
  {
    RequestLog log(LogFormat::json, file.descriptor(), {1'000'000, 1 << 20, kPatience});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; i++) log.write(some_record());
      });
    for (std::thread& thread : threads) thread.join();
  }
  const std::vector<std::string> lines = file.lines();
  EXPECT_EQ(lines.size(), 4000u);
  for (const std::string& line : lines) EXPECT_EQ(json::parse(line)["id"], "5f0c");
}

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736", kSpan = "00f067aa0ba902b7";
const std::string kHeader = "00-" + kTrace + "-" + kSpan + "-01";

TEST(Trace, IsReadFromTheHeader) {
  const auto context = parse_traceparent(kHeader);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace, kTrace);
  EXPECT_EQ(context->parent, kSpan);
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(parse_traceparent("00-" + kTrace + "-" + kSpan + "-00")->sampled);
  EXPECT_FALSE(parse_traceparent("00-" + kTrace + "-" + kSpan + "-fe")->sampled);
  EXPECT_TRUE(parse_traceparent("00-" + kTrace + "-" + kSpan + "-0b")->sampled);
}

TEST(Trace, IsDroppedUnlessItIsOfVersion00) {
  const std::vector<std::string> headers = {"",
                                            "00",
                                            "01-" + kTrace + "-" + kSpan + "-01",
                                            "ff-" + kTrace + "-" + kSpan + "-01",
                                            kHeader + "-",
                                            kHeader + " ",
                                            " " + kHeader,
                                            kHeader + "-extra",
                                            "00-" + std::string(32, '0') + "-" + kSpan + "-01",
                                            "00-" + kTrace + "-" + std::string(16, '0') + "-01"};
  for (const std::string& header : headers) EXPECT_FALSE(parse_traceparent(header)) << header;
}

TEST(Trace, IsDroppedWithACharacterThatIsNoLowerCaseHexadecimalDigit) {
  for (size_t i = 0; i < kHeader.size(); i++)
    for (const char c : {'A', 'F', 'g', 'G', '/', ':', '`', ' ', '\0', '\x80'}) {
      std::string header = kHeader;
      header[i] = c;
      EXPECT_FALSE(parse_traceparent(header)) << header;
    }
}

TEST(Trace, IsDroppedWhenItIsCut) {
  for (size_t size = 0; size < kHeader.size(); size++) EXPECT_FALSE(parse_traceparent(kHeader.substr(0, size)));
}

TEST(Trace, GivesASpanThatIsNewAndValid) {
  std::set<std::string> spans;
  for (int i = 0; i < 1000; i++) {
    const std::string span = new_span();
    EXPECT_TRUE(parse_traceparent("00-" + kTrace + "-" + span + "-01")) << span;
    spans.insert(span);
  }
  EXPECT_EQ(spans.size(), 1000u);
}

}  // namespace
}  // namespace qkv
