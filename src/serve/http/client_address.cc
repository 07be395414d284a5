#include "serve/http/client_address.h"

#include <boost/asio/ip/network_v6.hpp>

namespace qkv {

namespace ip = boost::asio::ip;

std::optional<ip::address> parse_address(std::string_view text) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(std::string(text), error);
  if (error) return {};
  if (address.is_v6() && address.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  return address;
}

std::string client_of_address(const std::string& address) {
  const std::optional<ip::address> parsed = parse_address(address);
  if (!parsed) return address;
  if (parsed->is_v4()) return parsed->to_string();
  const ip::address_v6 without_zone(parsed->to_v6().to_bytes());
  return ip::network_v6(without_zone, 64).canonical().to_string();
}

}  // namespace qkv
