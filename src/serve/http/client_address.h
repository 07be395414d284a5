// Addresses of clients: which of them count as one client, and which one a client behind proxies has. A client may
// write what it likes into X-Forwarded-For, so the header counts only as far as proxies that are trusted have written
// it.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/request_reader.h"

namespace qkv {

// Returns the address that a text spells, or nothing. An IPv4 address that is written as IPv6 is returned as IPv4.
std::optional<boost::asio::ip::address> parse_address(std::string_view text);

// Returns the client that an address stands for in limits and turns: the address itself or, for IPv6, its /64 network,
// because a host usually has a whole one. Returns any other text unchanged.
std::string client_of_address(const std::string& address);

class TrustedProxies {
 public:
  // Takes networks ("10.0.0.0/8", "fd00::/8"), addresses, and "unix" for everything that connects to a socket with a
  // path. Throws Error for another form.
  explicit TrustedProxies(const std::vector<std::string>& networks);

  // Returns the address of the client: `peer`, or if that is trusted the last address in X-Forwarded-For that is not.
  // peer: an address or "unix". An IPv4 address that is written as IPv6 is returned as IPv4.
  std::string client_of(const std::string& peer, const RequestHead& head) const;
  // Whether a peer is trusted.
  bool trusts(const std::string& peer) const;

 private:
  bool trusts(const boost::asio::ip::address& address) const;

  bool trusts_unix_ = false;
  std::vector<boost::asio::ip::network_v4> networks_v4_;
  std::vector<boost::asio::ip::network_v6> networks_v6_;
};

}  // namespace qkv
