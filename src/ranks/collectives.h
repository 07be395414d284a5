// Messages in which all ranks take part at once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ranks/communicator.h"

namespace qkv {

// Bytes of one rank, in parts.
using ByteParts = std::vector<std::span<std::byte>>;

// Sends the parts of this rank to all others and receives theirs. All ranks give parts of the same sizes, by rank.
void share_all(Communicator& communicator, const std::vector<ByteParts>& parts);

// The same to rank 0 only. Another rank gives its own parts; the others may be empty.
void collect(Communicator& communicator, const std::vector<ByteParts>& parts);

// Sends parts of rank 0 to all others, which receive them.
void broadcast(Communicator& communicator, const ByteParts& parts);
// The same for many bytes: each of the others gets a part from rank 0, and passes it on.
void spread(Communicator& communicator, std::span<std::byte> bytes);

}  // namespace qkv
