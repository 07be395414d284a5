// The server with real sockets: answers, streams, limits, clients that leave, and its end.
#include "serve/http/http_server.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <regex>
#include <thread>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;

// Answers /echo with the request, and keeps what is asked of /later until a test answers it.
class EchoHandler : public HttpHandler {
 public:
  void admit(const RequestHead& head, const std::string&, Grant& grant) override {
    grant = {1 << 20, std::make_shared<std::string>(head.target.path)};
    if (head.target.path == "/refused") throw HttpError(401, "no key");
  }

  void handle(std::shared_ptr<Exchange> exchange) override {
    const std::string& path = exchange->head().target.path;
    if (path == "/broken") throw std::runtime_error("a mistake");
    if (path == "/missing") throw HttpError(404, "not here");
    if (path == "/later") {
      exchange->on_gone([this] { gone++; });
      const std::lock_guard lock(mutex_);
      later_.push_back(std::move(exchange));
      return;
    }
    HttpReply reply;
    reply.type = "text/plain";
    reply.body = exchange->head().method + " " + path + " " + exchange->body();
    reply.headers = {{"X-Client", exchange->client()}};
    exchange->reply(reply);
  }

  HttpReply refusal(const Refusal& refused) override {
    const auto path = std::static_pointer_cast<std::string>(refused.hold);
    const std::lock_guard lock(mutex_);
    refused_.emplace_back(path ? *path : "", refused.id);
    return {refused.error.status, "text/plain", refused.error.what()};
  }
  void ended(const Exchange& exchange) override {
    const std::lock_guard lock(mutex_);
    ended_.push_back(exchange.id());
  }

  // Returns the path and the id of each request that was refused, and the ids of those that have ended.
  std::vector<std::pair<std::string, std::string>> refused() const {
    const std::lock_guard lock(mutex_);
    return refused_;
  }
  std::vector<std::string> all_ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  // Waits for a request of /later, for a minute at most.
  std::shared_ptr<Exchange> take() {
    for (int i = 0;; i++) {
      if (i == 60'000) throw std::runtime_error("no request of /later came");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex_);
      if (later_.empty()) continue;
      auto exchange = later_.front();
      later_.erase(later_.begin());
      return exchange;
    }
  }

  std::atomic<int> gone = 0;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> later_;
  std::vector<std::pair<std::string, std::string>> refused_;
  std::vector<std::string> ended_;
};

// A client with a connection of its own, which blocks.
class Client {
 public:
  explicit Client(const std::string& address, const std::string& from = "127.0.0.1") {
    socket_.open(boost::asio::ip::tcp::v4());
    socket_.bind({boost::asio::ip::make_address(from), 0});
    const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  }

  void send(const std::string& bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }
  void close() { socket_.close(); }
  void reset() {
    socket_.set_option(boost::asio::socket_base::linger(true, 0));
    socket_.close();
  }
  void shut_down() { socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send); }

  // Reads until the text has arrived, or the connection has ended; returns all that has arrived since the last call.
  std::string read_until(const std::string& text) {
    while (arrived_.find(text) == std::string::npos) {
      char bytes[4096];
      boost::system::error_code error;
      const size_t size = socket_.read_some(boost::asio::buffer(bytes), error);
      if (error) break;
      arrived_.append(bytes, size);
    }
    return std::exchange(arrived_, "");
  }
  std::string read_all() { return read_until("\x01 never sent"); }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_{io_};
  std::string arrived_;
};

class Server {
 public:
  explicit Server(const HttpOptions& options = {}) : server_(options, handler) {
    address = server_.listen("127.0.0.1:0");
    thread_ = std::thread([this] { server_.run(); });
  }
  ~Server() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  HttpServer& operator*() { return server_; }
  void join() { thread_.join(); }
  // Waits until this many connections are open.
  void expect_open(size_t count) {
    for (int i = 0; i < 60'000 && server_.counts().open != count; i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(server_.counts().open, count);
  }
  void expect_gone(int count) {
    for (int i = 0; i < 60'000 && handler.gone != count; i++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(handler.gone, count);
  }

  EchoHandler handler;
  std::string address;

 private:
  HttpServer server_;
  std::thread thread_;
};

std::string get(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}

std::string post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers +
         "\r\n" + body;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) found++;
  return found;
}

TEST(HttpServer, AnswersWithTheHeadersOfEveryAnswer) {
  Server server;
  Client client(server.address);
  client.send(post("/echo", "body", "X-Request-Id: id-1\r\nConnection: close\r\n"));
  const std::string answer = client.read_all();
  EXPECT_TRUE(std::regex_match(
      answer,
      std::regex("HTTP/1.1 200 OK\r\nDate: [A-Z][a-z]{2}, \\d\\d [A-Z][a-z]{2} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT\r\n"
                 "Content-Length: 15\r\nContent-Type: text/plain\r\nX-Request-Id: id-1\r\n"
                 "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Client: 127.0.0.1\r\n"
                 "Connection: close\r\n\r\nPOST /echo body")))
      << answer;
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  Server server;
  Client client(server.address);
  client.send(post("/a", "1") + get("/b") + post("/c", "3") + "HEAD /d HTTP/1.1\r\nHost: a\r\n\r\n" +
              get("/e", "Connection: close\r\n"));
  const std::string answers = client.read_all();
  EXPECT_EQ(count_of(answers, "HTTP/1.1 200 OK"), 5u);
  const size_t a = answers.find("POST /a 1"), b = answers.find("GET /b "), c = answers.find("POST /c 3");
  EXPECT_TRUE(a < b && b < c && c < answers.find("GET /e ")) << answers;
  EXPECT_EQ(answers.find("HEAD /d "), answers.npos);
}

TEST(HttpServer, AnswersWhatArrivesByteByByte) {
  Server server;
  Client client(server.address);
  for (const char c : post("/echo", "slow", "Connection: close\r\n")) client.send(std::string(1, c));
  EXPECT_TRUE(client.read_all().ends_with("POST /echo slow"));
}

TEST(HttpServer, StreamsInChunksOrToTheEndOfTheConnection) {
  Server server;
  for (const int minor : {1, 0}) {
    Client client(server.address);
    client.send("GET /later HTTP/1." + std::to_string(minor) + "\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
    const auto exchange = server.handler.take();
    exchange->begin({200, "text/event-stream"});
    exchange->send("data: é\n\n");
    exchange->send("");
    const std::string begin = client.read_until("\n\n");
    EXPECT_EQ(begin.find("Content-Length"), begin.npos);
    exchange->send("data: 2\n\n");
    exchange->end();
    if (minor == 1) {
      EXPECT_TRUE(begin.ends_with("Transfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\nX-Request-Id: " +
                                  exchange->id() +
                                  "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n"
                                  "a\r\ndata: é\n\n") ||
                  begin.ends_with("a\r\ndata: é\n\n\r\n"))
          << begin;
      EXPECT_TRUE(client.read_until("0\r\n\r\n").ends_with("9\r\ndata: 2\n\n\r\n0\r\n\r\n"));
      client.send(get("/echo", "Connection: close\r\n"));
      EXPECT_TRUE(client.read_all().ends_with("GET /echo "));
    } else {
      EXPECT_TRUE(client.read_all().ends_with("data: 2\n\n"));
    }
    EXPECT_EQ(exchange->unsent(), 0u);
  }
}

TEST(HttpServer, NoticesThatAClientLeaves) {
  Server server;
  int gone = 0;
  for (const auto leave : {&Client::close, &Client::reset, &Client::shut_down}) {
    Client client(server.address);
    client.send(get("/later"));
    const auto exchange = server.handler.take();
    EXPECT_FALSE(exchange->is_gone());
    (client.*leave)();
    server.expect_gone(++gone);
    EXPECT_TRUE(exchange->is_gone());
    exchange->reply({});  // is dropped
  }
  server.expect_open(0);
}

TEST(HttpServer, RefusesAndCloses) {
  Server server;
  for (const auto& [request, status] :
       {std::pair<std::string, std::string>{"GET / HTTP/1.1\n\n", "400 Bad Request"},
        {"GET / HTTP/1.1\r\n\r\n", "400 Bad Request"},
        {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505 HTTP Version Not Supported"},
        {get("/" + std::string(9000, 'a')), "414 URI Too Long"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n", "413 Payload Too Large"},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "400 Bad Request"},
        {"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
         "401 Unauthorized"}}) {
    Client client(server.address);
    client.send(request);
    const std::string answer = client.read_all();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + status + "\r\n")) << answer;
    EXPECT_NE(answer.find("Connection: close\r\n"), answer.npos) << answer;
    EXPECT_EQ(count_of(answer, "\r\nDate: "), 1u) << answer;
  }
}

TEST(HttpServer, AConnectionStaysAfterARefusalWhoseBodyIsShort) {
  Server server;
  Client client(server.address);
  client.send(post("/refused", std::string(1000, 'x')) + get("/missing") + get("/broken") +
              get("/echo", "Connection: close\r\n"));
  const std::string answers = client.read_all();
  for (const char* part :
       {"401 Unauthorized", "404 Not Found", "not here", "500 Internal Server Error", "internal error", "GET /echo "})
    EXPECT_NE(answers.find(part), answers.npos) << answers;
  EXPECT_EQ(answers.find("a mistake"), answers.npos);
}

TEST(HttpServer, EachRequestIsRefusedOrEnds) {
  Server server;
  Client client(server.address);
  client.send(post("/refused", "x", "X-Request-Id: 1\r\n") + get("/broken", "X-Request-Id: 2\r\n") +
              get("/echo", "X-Request-Id: 3\r\n") + "POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n" +
              "X-Request-Id: 4\r\n\r\n");
  client.read_all();
  Client malformed(server.address);
  malformed.send("GET /\r\n\r\n");
  const std::string answer = malformed.read_all();
  const auto refused = server.handler.refused();
  ASSERT_EQ(refused.size(), 4u);
  const std::pair<std::string, std::string> wanted[] = {{"/refused", "1"}, {"/broken", "2"}, {"/large", "4"}};
  EXPECT_TRUE(std::equal(std::begin(wanted), std::end(wanted), refused.begin()));
  EXPECT_EQ(refused.back().first, "");
  EXPECT_NE(answer.find("X-Request-Id: " + refused.back().second + "\r\n"), answer.npos) << answer;
  EXPECT_EQ(server.handler.all_ended(), std::vector<std::string>{"3"});
}

TEST(HttpServer, ContinuesWhenTheBodyIsWanted) {
  Server server;
  Client client(server.address);
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  EXPECT_TRUE(client.read_all().ends_with("POST /echo ab"));
}

TEST(HttpServer, EndsSlowClients) {
  using std::chrono::milliseconds;
  HttpOptions options;
  options.header_timeout = options.body_timeout = options.write_timeout = milliseconds(100);
  options.linger = milliseconds(50);
  Server server(options);
  Client slow_head(server.address), slow_body(server.address);
  slow_head.send("GET / HTTP/1.1\r\n");
  slow_body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  for (Client* client : {&slow_head, &slow_body}) EXPECT_TRUE(client->read_all().starts_with("HTTP/1.1 408 "));
  Client reader(server.address);
  reader.send(get("/later"));
  const auto exchange = server.handler.take();
  exchange->begin({});
  exchange->send(std::string(16 << 20, 'x'));  // more than a socket holds
  server.expect_gone(1);
  server.expect_open(0);
}

TEST(HttpServer, EndsIdleClients) {
  HttpOptions options;
  options.idle_timeout = std::chrono::milliseconds(300);
  Server server(options);
  Client idle(server.address);
  EXPECT_EQ(idle.read_all(), "");
  server.expect_open(0);
}

TEST(HttpServer, ClosesConnectionsBeyondTheLimit) {
  HttpOptions options;
  options.connections = 2;
  Server server(options);
  Client a(server.address), b(server.address);
  server.expect_open(2);
  Client c(server.address);
  EXPECT_EQ(c.read_all(), "");
  EXPECT_EQ((*server).counts().refused, 1u);
  a.close();
  server.expect_open(1);
  Client d(server.address);
  d.send(get("/echo", "Connection: close\r\n"));
  EXPECT_TRUE(d.read_all().ends_with("GET /echo "));
}

TEST(HttpServer, AnAddressHasOnlyAPartOfTheConnections) {
  HttpOptions options;
  options.connections = 3;
  options.client_connections = 2;
  Server server(options);
  Client a(server.address), b(server.address);
  server.expect_open(2);
  Client refused(server.address);
  EXPECT_EQ(refused.read_all(), "");
  Client other(server.address, "127.0.0.2");
  server.expect_open(3);
  a.close();
  server.expect_open(2);
  Client again(server.address);
  again.send(get("/echo", "Connection: close\r\n"));
  EXPECT_TRUE(again.read_all().ends_with("GET /echo "));
}

TEST(HttpServer, DrainsWithoutLosingAnAnswer) {
  Server server;
  Client idle(server.address), waiting(server.address);
  waiting.send(get("/later"));
  const auto exchange = server.handler.take();
  (*server).drain();
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_THROW(Client(server.address).send("x"), boost::system::system_error);
  HttpReply reply;
  reply.body = "done";
  exchange->reply(reply);
  EXPECT_TRUE(waiting.read_all().ends_with("done"));
  waiting.close();
  server.join();
  EXPECT_EQ((*server).counts().open, 0u);
}

TEST(HttpServer, ListensOnPathsAndNamesWhatFails) {
  const testing::TempDir directory;
  const std::string path = directory / "socket";
  EchoHandler handler;
  {
    HttpServer server({}, handler);
    EXPECT_EQ(server.listen("unix:" + path), "unix:" + path);
    std::thread thread([&] { server.run(); });
    boost::asio::io_context io;
    boost::asio::local::stream_protocol::socket socket(io);
    socket.connect(path);
    boost::asio::write(socket, boost::asio::buffer(get("/echo", "Connection: close\r\n")));
    std::string answer(10, ' ');
    socket.read_some(boost::asio::buffer(answer));
    EXPECT_EQ(answer, "HTTP/1.1 2");
    HttpServer other({}, handler);
    EXPECT_EQ(error_of([&] { other.listen("unix:" + path); }),
              "unix:" + path + ": cannot listen: Address already in use");
    server.stop();
    thread.join();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  Server taken;
  HttpServer server({}, handler);
  EXPECT_EQ(error_of([&] { server.listen(taken.address); }), taken.address + ": cannot listen: Address already in use");
  for (const char* wrong : {"8080", ":8080", "host:", ""})
    EXPECT_EQ(error_of([&] { server.listen(wrong); }),
              "listen must be HOST:PORT or unix:PATH (is \"" + std::string(wrong) + "\")");
}

}  // namespace
}  // namespace qkv
