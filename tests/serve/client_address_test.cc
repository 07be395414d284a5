// Which addresses count as one client.
#include "serve/http/client_address.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace qkv
