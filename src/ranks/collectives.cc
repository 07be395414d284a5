#include "ranks/collectives.h"

#include "core/to_size.h"
#include "ranks/slices.h"

namespace qkv {
namespace {

void send_all(Communicator::Group& group, const ByteParts& parts, int to) {
  for (const auto& part : parts) group.send(part, to);
}

void receive_all(Communicator::Group& group, const ByteParts& parts, int from) {
  for (const auto& part : parts) group.receive(part, from);
}

}  // namespace

void share_all(Communicator& c, const std::vector<ByteParts>& parts) {
  Communicator::Group group(c);
  for (int peer = 0; peer < c.size(); peer++)
    if (peer != c.rank()) receive_all(group, parts[to_size(peer)], peer);
  for (int k = 1; k < c.size(); k++) send_all(group, parts[to_size(c.rank())], (c.rank() + k) % c.size());
  group.wait();
}

void collect(Communicator& c, const std::vector<ByteParts>& parts) {
  Communicator::Group group(c);
  if (c.rank() > 0) send_all(group, parts[to_size(c.rank())], 0);
  for (int peer = 1; c.rank() == 0 && peer < c.size(); peer++) receive_all(group, parts[to_size(peer)], peer);
  group.wait();
}

void broadcast(Communicator& c, const ByteParts& parts) {
  Communicator::Group group(c);
  if (c.rank() > 0) receive_all(group, parts, 0);
  for (int peer = 1; c.rank() == 0 && peer < c.size(); peer++) send_all(group, parts, peer);
  group.wait();
}

void spread(Communicator& c, std::span<std::byte> bytes) {
  std::vector<ByteParts> parts;
  for (int r = 0; r < c.size(); r++) {
    const EvenSlice part = even_slice(std::ssize(bytes), r, c.size());
    parts.push_back({bytes.subspan(to_size(part.begin), to_size(part.end - part.begin))});
  }
  {
    Communicator::Group group(c);
    if (c.rank() > 0) group.receive(parts[to_size(c.rank())].front(), 0);
    for (int r = 1; c.rank() == 0 && r < c.size(); r++) group.send(parts[to_size(r)].front(), r);
    group.wait();
  }
  share_all(c, parts);
}

}  // namespace qkv
