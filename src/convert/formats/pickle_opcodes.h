// The opcodes of Python's pickle format, protocols 0 to 5.
#pragma once

#include <cstdint>
#include <string>

namespace qkv {

enum class Opcode : uint8_t {
  mark = '(',
  stop = '.',
  real = 'G',
  int32 = 'J',
  uint8 = 'K',
  uint16 = 'M',
  none = 'N',
  persistent = 'Q',
  reduce = 'R',
  bytes32 = 'T',
  bytes8 = 'U',
  text32 = 'X',
  append = 'a',
  build = 'b',
  global = 'c',
  appends = 'e',
  get8 = 'h',
  get32 = 'j',
  put8 = 'q',
  put32 = 'r',
  set_item = 's',
  tuple = 't',
  set_items = 'u',
  empty_tuple = ')',
  empty_list = ']',
  empty_dictionary = '}',
  protocol = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  yes = 0x88,
  no = 0x89,
  long8 = 0x8a,
  text8 = 0x8c,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
};

// Returns the name of an opcode in Python's documentation, "REDUCE", or its number, "0xff", if there is none.
std::string opcode_name(uint8_t opcode);

}  // namespace qkv
