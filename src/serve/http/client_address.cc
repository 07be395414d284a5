#include "serve/http/client_address.h"

#include <algorithm>
#include <boost/asio/ip/network_v6.hpp>
#include <optional>
#include <string_view>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

namespace ip = boost::asio::ip;

constexpr std::string_view kUnix = "unix";
constexpr int kMostProxies = 32;  // in a row

// Parses an entry of X-Forwarded-For: an address, perhaps with a port.
std::optional<ip::address> parse_entry(std::string_view entry) {
  while (entry.starts_with(' ') || entry.starts_with('\t')) entry.remove_prefix(1);
  while (entry.ends_with(' ') || entry.ends_with('\t')) entry.remove_suffix(1);
  if (entry.starts_with('[')) {
    const size_t end = entry.find(']');
    return end == entry.npos ? std::nullopt : parse_address(entry.substr(1, end - 1));
  }
  const size_t colon = entry.find(':');
  const bool has_port = colon != entry.npos && colon == entry.rfind(':');
  return parse_address(has_port ? entry.substr(0, colon) : entry);
}

// Removes the last entry of a list and returns it.
std::string_view take_last(std::string_view& list) {
  const size_t comma = list.rfind(',');
  const std::string_view last = list.substr(comma == list.npos ? 0 : comma + 1);
  list = list.substr(0, comma == list.npos ? 0 : comma);
  return last;
}

}  // namespace

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

TrustedProxies::TrustedProxies(const std::vector<std::string>& networks) {
  for (const std::string& text : networks) {
    boost::system::error_code not_v4, not_v6;
    const bool has_length = text.find('/') != text.npos;
    const ip::network_v4 v4 = ip::make_network_v4(has_length ? text : text + "/32", not_v4);
    const ip::network_v6 v6 = ip::make_network_v6(has_length ? text : text + "/128", not_v6);
    if (text == kUnix)
      trusts_unix_ = true;
    else if (!not_v4)
      networks_v4_.push_back(v4.canonical());
    else if (!not_v6)
      networks_v6_.push_back(v6.canonical());
    else
      fail("trust_proxy must be an address or a network such as 10.0.0.0/8 or fd00::/8, or unix (is {})",
           excerpt(text));
  }
}

bool TrustedProxies::trusts(const ip::address& address) const {
  const auto contains = [&](const auto& network, const auto& member) {
    return std::decay_t<decltype(network)>(member, network.prefix_length()).canonical() == network;
  };
  const auto contains_v4 = [&](const ip::network_v4& network) { return contains(network, address.to_v4()); };
  const auto contains_v6 = [&](const ip::network_v6& network) { return contains(network, address.to_v6()); };
  return address.is_v4() ? std::any_of(networks_v4_.begin(), networks_v4_.end(), contains_v4)
                         : std::any_of(networks_v6_.begin(), networks_v6_.end(), contains_v6);
}

bool TrustedProxies::trusts(const std::string& peer) const {
  const std::optional<ip::address> address = parse_address(peer);
  return address ? trusts(*address) : peer == kUnix && trusts_unix_;
}

std::string TrustedProxies::client_of(const std::string& peer, const RequestHead& head) const {
  std::optional<ip::address> client = parse_address(peer);
  const bool is_trusted = trusts(peer);
  int proxies = 0;
  for (auto field = head.fields.rbegin(); is_trusted && field != head.fields.rend(); ++field) {
    if (field->first != "x-forwarded-for") continue;
    for (std::string_view list = field->second; !list.empty() && proxies < kMostProxies; proxies++) {
      const auto before = parse_entry(take_last(list));
      if (!before) return client ? client->to_string() : peer;
      client = before;
      if (!trusts(*client)) return client->to_string();
    }
  }
  return client ? client->to_string() : peer;
}

}  // namespace qkv
