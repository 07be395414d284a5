// Python's pickle format, decoded as data: numbers, strings, tuples, lists, dictionaries, and the calls that make other
// objects, of which only the names are read. Nothing is executed.
//
//   pickle = PROTO opcode* STOP     (pickletools.py of Python documents the opcodes of the stack machine)
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// A value; the items of composed ones are in their Pickle, so copies are cheap and share them.
struct PickleValue {
  //   global      a name of Python's modules
  //   call        a global and the tuple of its arguments
  //   persistent  an object outside the pickle, described by its item
  enum class Kind : uint8_t { none, boolean, integer, real, text, tuple, list, dictionary, global, call, persistent };

  Kind kind = Kind::none;
  int64_t number = 0;          // a boolean or an integer; of composed values, where their items are
  std::string_view text = {};  // of a text, in the bytes that were read; of a global, "collections.OrderedDict"

  bool is(Kind other) const { return kind == other; }
  bool is_global(std::string_view name) const { return kind == Kind::global && text == name; }
};

// Returns "an integer", for errors.
const char* name_of(PickleValue::Kind kind);

// Rules for a pickle that nobody has checked.
struct PickleRules {
  std::string where;                          // begins errors
  std::span<const std::string_view> globals;  // the names that may occur
  const char* accepted = "";                  // in words, for the error about another name
  size_t max_steps = 0;                       // opcodes; each takes less than 300 bytes of memory
};

class Pickle {
 public:
  // Decodes the pickle at the beginning of `bytes`, and removes it there. Texts stay in the bytes, which must outlive
  // this object. An OrderedDict is a dictionary; its attribute `_metadata` is dropped. Throws Error that names an
  // opcode or a global that is not allowed, or says what is broken.
  Pickle(std::string_view& bytes, const PickleRules& rules);

  const PickleValue& root() const { return root_; }
  // The items of a tuple or list, the keys and values of a dictionary in turn, the function and the arguments of a
  // call, the description of a persistent object.
  std::span<const PickleValue> items(const PickleValue& value) const;
  // The value of the last key of this name in a dictionary; null if there is none, or if it is no dictionary.
  const PickleValue* member(const PickleValue& dictionary, std::string_view key) const;
  // All persistent objects, in the order of the pickle.
  const std::vector<PickleValue>& persistent() const { return persistent_; }

 private:
  class Machine;

  std::deque<std::vector<PickleValue>> items_;
  std::vector<PickleValue> persistent_;
  PickleValue root_;
};

}  // namespace qkv
