// Turns of clients: shares of tokens, and clients that come and go.
#include "decode/engine/client_turns.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(ClientTurns, TextsOfOneTurnHave512TokensOfAClient) {
  ClientTurns turns;
  std::vector<int64_t> a;
  for (int i = 0; i < 6; i++) a.push_back(turns.next("a", 200));
  EXPECT_EQ(a, (std::vector<int64_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(turns.next("b", 5000), 0);
  EXPECT_EQ(turns.next("b", 1), 9);
  EXPECT_EQ(turns.next("c", 1), 0);
}

TEST(ClientTurns, ClientThatWasAwayJoinsAtTheCurrentTurn) {
  ClientTurns turns;
  EXPECT_EQ(turns.next("a", 2000), 0);
  EXPECT_EQ(turns.next("a", 1), 3);
  turns.start(3);
  turns.start(1);
  EXPECT_EQ(turns.next("b", 1), 3);
  EXPECT_EQ(turns.next("a", 1), 3);
  turns.start(10);
  EXPECT_EQ(turns.next("a", 1), 10);
}

TEST(ClientTurns, WaitingTextsAreInTheOrderOfTurns) {
  struct Text {
    int64_t turn;
    int number;
  };
  std::list<Text> waiting;
  int number = 0;
  for (const int64_t turn : {0, 0, 2, 1, 0, 2, 1}) insert_by_turn(waiting, Text{turn, number++});
  std::vector<int> order;
  for (const Text& text : waiting) order.push_back(text.number);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 4, 3, 6, 2, 5}));
}

}  // namespace
}  // namespace qkv
