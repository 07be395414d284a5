// Addresses of clients, and which of them count as one client.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace qkv {

// Returns the address that a text spells, or nothing. An IPv4 address that is written as IPv6 is returned as IPv4.
std::optional<boost::asio::ip::address> parse_address(std::string_view text);

// Returns the client that an address stands for in limits and turns: the address itself or, for IPv6, its /64 network,
// of which one host may use all addresses. Returns a text that is no address as it is.
std::string client_of_address(const std::string& address);

}  // namespace qkv
