#include "serve/http/listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>

#include "core/fail.h"

namespace qkv {
namespace {

namespace asio = boost::asio;

using asio::ip::tcp;
using Local = asio::local::stream_protocol;
using Generic = asio::generic::stream_protocol;

constexpr std::string_view kUnixPrefix = "unix:";

// Removes a socket whose server has died: nobody accepts there.
void remove_dead_socket(asio::io_context& io, const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  boost::system::error_code error;
  Local::socket(io).connect(Local::endpoint(path), error);
  if (error == asio::error::connection_refused) ::unlink(path.c_str());
}

std::pair<std::string, std::string> host_and_port(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0 || colon + 1 == address.size())
    fail("listen must be HOST:PORT or unix:PATH (is \"{}\")", address);
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

bool is_internet(const Generic::endpoint& end) {
  const int family = end.protocol().family();
  return family == AF_INET || family == AF_INET6;
}

template <class End>
End converted(const Generic::endpoint& from) {
  End end;
  end.resize(from.size());
  std::memcpy(end.data(), from.data(), from.size());
  return end;
}

std::string address_text(const tcp::endpoint& end) {
  const std::string host = end.address().to_string();
  return fmt::format("{}:{}", end.address().is_v6() ? "[" + host + "]" : host, end.port());
}

std::string address_text(const Local::endpoint& end) {
  std::string path = end.path();
  if (path.starts_with('\0')) path[0] = '@';  // a name that is no path, as Linux writes it
  return fmt::format("{}{}", kUnixPrefix, path);
}

// Returns an option of a socket; 0 for a descriptor that is none.
int socket_option(int descriptor, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : 0;
}

}  // namespace

Listener listen_on(asio::io_context& io, const std::string& address) {
  const bool is_path = address.starts_with(kUnixPrefix);
  try {
    if (is_path) {
      const std::string path = address.substr(kUnixPrefix.size());
      remove_dead_socket(io, path);
      return {Listener::Acceptor(io, Generic::endpoint(Local::endpoint(path))), address, path};
    }
    const auto [host, port] = host_and_port(address);
    const tcp::endpoint end = tcp::resolver(io).resolve(host, port, tcp::resolver::passive)->endpoint();
    Listener::Acceptor acceptor(io, Generic::endpoint(end));
    const auto taken = converted<tcp::endpoint>(acceptor.local_endpoint()).port();
    return {std::move(acceptor), fmt::format("{}:{}", address.substr(0, address.rfind(':')), taken)};
  } catch (const boost::system::system_error& error) {
    fail("{}: cannot listen: {}", address, error.code().message());
  }
}

Listener take_listener(asio::io_context& io, int descriptor) {
  const int family = socket_option(descriptor, SO_DOMAIN);
  if (socket_option(descriptor, SO_TYPE) != SOCK_STREAM || socket_option(descriptor, SO_ACCEPTCONN) == 0 ||
      (family != AF_INET && family != AF_INET6 && family != AF_UNIX))
    fail("descriptor {}: must be a stream socket of TCP or a path that listens", descriptor);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  Listener::Acceptor acceptor(io, Generic(family, 0), descriptor);
  const Generic::endpoint end = acceptor.local_endpoint();
  return {std::move(acceptor), is_internet(end) ? address_text(converted<tcp::endpoint>(end))
                                                : address_text(converted<Local::endpoint>(end))};
}

std::string client_name(const Generic::socket& socket) {
  boost::system::error_code error;
  const Generic::endpoint end = socket.remote_endpoint(error);
  if (error) return "";
  return is_internet(end) ? converted<tcp::endpoint>(end).address().to_string() : "unix";
}

}  // namespace qkv
