// The order in which texts of several clients start: the clients in turn, each with as many tokens. And the room that a
// client leaves to others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <string>
#include <utility>

namespace qkv {

// Gives each text a turn; texts start in the order of turns, and within one in the order in which they came. A client's
// texts of 512 tokens in all have one turn. A client that had nothing to do joins at the current turn. This is
// start-time fair queueing: Goyal, Vin and Cheng (1996).
class ClientTurns {
 public:
  static constexpr int64_t kQuantum = 512;

  // Returns the turn of a client's next text, of `cost` tokens.
  int64_t next(const std::string& client, int64_t cost) {
    int64_t& tokens = tokens_[client];
    tokens = std::max(tokens, now_);
    const int64_t turn = tokens / kQuantum;
    tokens += cost;
    return turn;
  }

  // Makes this turn the current one, unless a later one is.
  void start(int64_t turn) {
    if (turn * kQuantum <= now_) return;
    now_ = turn * kQuantum;
    std::erase_if(tokens_, [&](const auto& client) { return client.second <= now_; });
  }

 private:
  int64_t now_ = 0;
  std::map<std::string, int64_t> tokens_;  // of the texts of each client
};

// The room that the running texts of each client take. A client leaves a quarter of all room to others, unless it has
// nothing running.
class ClientRoom {
 public:
  // Whether a client may take so much more of all the room. Those without a name may.
  bool leaves_enough(const std::string& client, int64_t more, int64_t all) const {
    const auto place = taken_.find(client);
    return client.empty() || place == taken_.end() || place->second + more <= all - all / 4;
  }
  void take(const std::string& client, int64_t room) {
    if (!client.empty()) taken_[client] += room;
  }
  void give_back(const std::string& client, int64_t room) {
    const auto place = taken_.find(client);
    if (place != taken_.end() && (place->second -= room) <= 0) taken_.erase(place);
  }

 private:
  std::map<std::string, int64_t> taken_;
};

// Inserts a text with a member `turn` behind those that start before it.
template <class Text>
void insert_by_turn(std::list<Text>& waiting, Text text) {
  auto place = waiting.end();
  while (place != waiting.begin() && std::prev(place)->turn > text.turn) place--;
  waiting.insert(place, std::move(text));
}

}  // namespace qkv
