// Which addresses count as one client, and the address of a client behind proxies and behind those who claim to be.
#include "serve/http/client_address.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace qkv {
namespace {

TEST(ClientAddress, AddressesOfOneV6NetworkAreOneClient) {
  const std::string client = client_of_address("2001:db8:1:2::1");
  EXPECT_EQ(client, "2001:db8:1:2::/64");
  for (const char* same : {"2001:db8:1:2::", "2001:DB8:1:2:ffff:ffff:ffff:ffff", "2001:0db8:0001:0002:0:0:0:7"})
    EXPECT_EQ(client_of_address(same), client) << same;
  for (const char* other : {"2001:db8:1:3::1", "2001:db8:1:1:ffff:ffff:ffff:ffff", "2001:db8::2:1", "::1"})
    EXPECT_NE(client_of_address(other), client) << other;
  EXPECT_EQ(client_of_address("fe80::1%1"), client_of_address("fe80::2"));
}

TEST(ClientAddress, AddressesOfV4AreClientsOfTheirOwn) {
  EXPECT_EQ(client_of_address("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(client_of_address("::ffff:10.0.0.1"), "10.0.0.1");
  EXPECT_NE(client_of_address("::ffff:10.0.0.1"), client_of_address("::ffff:10.0.0.2"));
}

TEST(ClientAddress, WhatIsNoAddressStaysAsItIs) {
  for (const char* text : {"unix", "", "1.2.3", "2001:db8::/64", "[::1]", "alice"})
    EXPECT_EQ(client_of_address(text), text);
}

using testing::error_of;
using testing::expect_contains;

RequestHead forwarded_for(const std::vector<std::string>& values) {
  RequestHead head;
  for (const std::string& value : values) head.fields.emplace_back("x-forwarded-for", value);
  head.fields.emplace_back("x-real-ip", "9.9.9.9");
  return head;
}

TEST(TrustedProxies, AreNotBelievedUnlessTheyAreListed) {
  for (const char* peer : {"10.1.2.3", "2001:db8::1", "unix"})
    EXPECT_EQ(TrustedProxies({}).client_of(peer, forwarded_for({"1.2.3.4"})), peer);
  const TrustedProxies proxies({"10.0.0.0/8", "fd00::/8", "192.168.1.1"});
  for (const char* peer : {"11.0.0.1", "9.255.255.255", "192.168.1.2", "fe00::1", "2001:db8::1", "unix", ""})
    EXPECT_EQ(proxies.client_of(peer, forwarded_for({"1.2.3.4"})), peer);
}

TEST(TrustedProxies, GiveTheAddressOfTheirClient) {
  const TrustedProxies proxies({"10.0.0.0/8", "fd00::/8", "192.168.1.1", "2001:db8::5", "unix"});
  for (const char* peer :
       {"10.0.0.0", "10.255.255.255", "192.168.1.1", "fd12:3456::1", "2001:db8::5", "unix", "::ffff:10.0.0.1"})
    EXPECT_EQ(proxies.client_of(peer, forwarded_for({"1.2.3.4"})), "1.2.3.4") << peer;
}

TEST(TrustedProxies, GiveTheLastAddressThatIsNotTrusted) {
  const TrustedProxies proxies({"10.0.0.0/8", "fd00::/8"});
  const auto client = [&](const std::vector<std::string>& values) {
    return proxies.client_of("10.0.0.1", forwarded_for(values));
  };
  EXPECT_EQ(client({"6.6.6.6, 1.2.3.4"}), "1.2.3.4");
  EXPECT_EQ(client({"6.6.6.6, 1.2.3.4,10.0.0.2 ,\tfd00::7"}), "1.2.3.4");
  EXPECT_EQ(client({"6.6.6.6", "1.2.3.4", "10.0.0.2"}), "1.2.3.4");
  EXPECT_EQ(client({"10.0.0.9, 10.0.0.2"}), "10.0.0.9");
  EXPECT_EQ(client({}), "10.0.0.1");
  EXPECT_EQ(client({"1.2.3.4:5678"}), "1.2.3.4");
  EXPECT_EQ(client({"[2001:db8::9]:443"}), "2001:db8::9");
  EXPECT_EQ(client({"2001:DB8:0::9"}), "2001:db8::9");
  EXPECT_EQ(client({"::ffff:1.2.3.4"}), "1.2.3.4");
}

TEST(TrustedProxies, GiveTheLastProxyBeforeAnEntryThatIsNoAddress) {
  const TrustedProxies proxies({"10.0.0.0/8", "unix"});
  for (const std::string entry : {"unknown", "", ",", " ", "_hidden", "example.org", "1.2.3", "1.2.3.4.5", "[", "[]",
                                  "[1.2.3.4", "\"1.2.3.4\"", "1.2.3.4;x", "1.2.3.4\n5"}) {
    EXPECT_EQ(proxies.client_of("10.0.0.1", forwarded_for({"1.2.3.4, " + entry + ", 10.0.0.2"})), "10.0.0.2") << entry;
    EXPECT_EQ(proxies.client_of("unix", forwarded_for({entry + ","})), "unix") << entry;
  }
}

TEST(TrustedProxies, FollowAChainOfLimitedLength) {
  const TrustedProxies proxies({"10.0.0.0/8"});
  std::string chain = "1.2.3.4";
  for (int i = 0; i < 31; i++) chain += ", 10.0.0.2";
  EXPECT_EQ(proxies.client_of("10.0.0.1", forwarded_for({chain})), "1.2.3.4");
  EXPECT_EQ(proxies.client_of("10.0.0.1", forwarded_for({chain + ", 10.0.0.2"})), "10.0.0.2");
}

TEST(TrustedProxies, ContainEveryAddressOfTheirNetworks) {
  const TrustedProxies all_v4({"0.0.0.0/0"}), all_v6({"::/0"}), odd({"10.1.2.3/31"});
  EXPECT_EQ(all_v4.client_of("8.8.8.8", forwarded_for({"1.1.1.1"})), "1.1.1.1");
  EXPECT_EQ(all_v4.client_of("2001:db8::1", forwarded_for({"1.1.1.1"})), "2001:db8::1");
  EXPECT_EQ(all_v6.client_of("2001:db8::1", forwarded_for({"1.1.1.1"})), "1.1.1.1");
  EXPECT_EQ(odd.client_of("10.1.2.2", forwarded_for({"1.1.1.1"})), "1.1.1.1");
  EXPECT_EQ(odd.client_of("10.1.2.4", forwarded_for({"1.1.1.1"})), "10.1.2.4");
}

TEST(TrustedProxies, MustBeAddressesOrNetworks) {
  for (const std::string text :
       {"", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "fd00::/129", "example.org", "*",
        "unix:/run/x", "10.0.0.0 /8", "[::1]", "10.0.0.0/8 "})
    expect_contains(error_of([&] { TrustedProxies({text}); }),
                    "trust_proxy must be an address or a network such as 10.0.0.0/8 or fd00::/8, or unix (is ");
}

}  // namespace
}  // namespace qkv
