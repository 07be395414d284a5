// A socket that the server accepts connections from.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <string>

namespace qkv {

struct Listener {
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

  Acceptor acceptor;
  std::string address;    // "HOST:PORT" or "unix:PATH"
  std::string path = "";  // of a socket that the server has made, and removes at its end

  bool is_local() const { return address.starts_with("unix:"); }
};

// Listens on "HOST:PORT" or "unix:PATH"; port 0 takes a free one. Throws Error.
Listener listen_on(boost::asio::io_context& io, const std::string& address);

// Takes a socket that listens already, which it closes at its end. Throws Error for any other descriptor.
Listener take_listener(boost::asio::io_context& io, int descriptor);

// Returns the address of a client, without its port; "unix" for one on the same machine.
std::string client_name(const boost::asio::generic::stream_protocol::socket& socket);

}  // namespace qkv
