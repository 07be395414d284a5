// Values of the template language, with the types and the meaning that they have in Python.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/budget.h"
#include "chat/marked_text.h"

namespace qkv::jinja {

// A value that does not exist. It prints nothing; most other uses are an error, which says why.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};

struct Text;
struct Sequence;
struct Dict;
struct Namespace;
struct Loop;
struct Macro;
struct Function;
struct Method;

using TextPtr = std::shared_ptr<const Text>;
using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;

// Texts, sequences and dictionaries never change. Namespaces, loops and macros belong to the renderer.
using Value = std::variant<Undefined, None, bool, int64_t, double, TextPtr, SequencePtr, DictPtr, Namespace*, Loop*,
                           const Macro*, const Function*, std::shared_ptr<const Method>>;

struct Text {
  MarkedText text;
  Charge charge;

  Text(MarkedText t, Budget* budget) : text(std::move(t)), charge(budget, size_of(text)) {}
  static size_t size_of(const MarkedText& text) {
    return sizeof(Text) + text.bytes.size() + text.data.size() * sizeof(ByteRange);
  }
};

constexpr int kMaxValueDepth = 100;  // sequences and dictionaries within each other

// The depth of a value, and the bytes that it prints, about. A value that is shared counts as often as it is reached.
struct Extent {
  int depth = 0;
  size_t bytes = 0;
};
Extent extent_of(const Value& value);

// A list, a tuple, what keys(), values() and items() return, a range, or an iterator, whose items are read once.
enum class SequenceKind { list, tuple, view, range, iterator };
struct Sequence {
  SequenceKind kind;
  std::vector<Value> items;
  Extent extent;
  Charge charge;
  mutable size_t next = 0;  // of an iterator: the items before it have been read

  Sequence(SequenceKind k, std::vector<Value> values, Budget* budget);
};

struct Dict {
  using Entries = std::vector<std::pair<Value, Value>>;

  Entries entries;  // in the order of insertion, the keys differ
  Extent extent;
  Charge charge;

  Dict(Entries e, Budget* budget);
  const Value* find(const Value& key) const;  // null if it is absent
  const Value* find(std::string_view key) const;
};

// A method of a value, which is called with it.
struct Method {
  const Function* function;
  Value self;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes = {};

  Value* find(std::string_view name);
};

bool is_undefined(const Value& value);
bool is_none(const Value& value);
const MarkedText* text_of(const Value& value);          // null for another type
const Sequence* sequence_of(const Value& value);        // null for another type
const Dict* dict_of(const Value& value);                // null for another type
std::optional<int64_t> integer_of(const Value& value);  // of a number without a fraction part type, or a bool
std::optional<double> number_of(const Value& value);    // of any number, or a bool

// Returns the name of the type in Python: "str", "NoneType".
std::string type_name(const Value& value);
// Returns the name that errors have for the object: "dict object", "None".
std::string object_name(const Value& value);

bool is_true(const Value& value);
bool equal(const Value& a, const Value& b);
// Returns the order of two numbers, texts, lists or tuples; nothing for values that have none, such as NaN. Throws
// Error for types that cannot be compared. `symbol` is the operator in the error.
std::optional<int> compare(const Value& a, const Value& b, std::string_view symbol = "<");

[[noreturn]] void fail_undefined(const Undefined& value);
void check_defined(const Value& value);  // throws Error for an undefined value

}  // namespace qkv::jinja
