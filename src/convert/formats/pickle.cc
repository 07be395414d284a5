#include "convert/formats/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// The opcodes of Python's pickle format, protocols 0 to 5.

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

struct NamedOpcode {
  uint8_t opcode;
  const char* name;
};

constexpr NamedOpcode kOpcodes[] = {{'(', "MARK"},
                                    {'.', "STOP"},
                                    {'0', "POP"},
                                    {'1', "POP_MARK"},
                                    {'2', "DUP"},
                                    {'F', "FLOAT"},
                                    {'I', "INT"},
                                    {'J', "BININT"},
                                    {'K', "BININT1"},
                                    {'L', "LONG"},
                                    {'M', "BININT2"},
                                    {'N', "NONE"},
                                    {'P', "PERSID"},
                                    {'Q', "BINPERSID"},
                                    {'R', "REDUCE"},
                                    {'S', "STRING"},
                                    {'T', "BINSTRING"},
                                    {'U', "SHORT_BINSTRING"},
                                    {'V', "UNICODE"},
                                    {'X', "BINUNICODE"},
                                    {'a', "APPEND"},
                                    {'b', "BUILD"},
                                    {'c', "GLOBAL"},
                                    {'d', "DICT"},
                                    {'}', "EMPTY_DICT"},
                                    {'e', "APPENDS"},
                                    {'g', "GET"},
                                    {'h', "BINGET"},
                                    {'i', "INST"},
                                    {'j', "LONG_BINGET"},
                                    {'l', "LIST"},
                                    {']', "EMPTY_LIST"},
                                    {'o', "OBJ"},
                                    {'p', "PUT"},
                                    {'q', "BINPUT"},
                                    {'r', "LONG_BINPUT"},
                                    {'s', "SETITEM"},
                                    {'t', "TUPLE"},
                                    {')', "EMPTY_TUPLE"},
                                    {'u', "SETITEMS"},
                                    {'G', "BINFLOAT"},
                                    {'B', "BINBYTES"},
                                    {'C', "SHORT_BINBYTES"},
                                    {0x80, "PROTO"},
                                    {0x81, "NEWOBJ"},
                                    {0x82, "EXT1"},
                                    {0x83, "EXT2"},
                                    {0x84, "EXT4"},
                                    {0x85, "TUPLE1"},
                                    {0x86, "TUPLE2"},
                                    {0x87, "TUPLE3"},
                                    {0x88, "NEWTRUE"},
                                    {0x89, "NEWFALSE"},
                                    {0x8a, "LONG1"},
                                    {0x8b, "LONG4"},
                                    {0x8c, "SHORT_BINUNICODE"},
                                    {0x8d, "BINUNICODE8"},
                                    {0x8e, "BINBYTES8"},
                                    {0x8f, "EMPTY_SET"},
                                    {0x90, "ADDITEMS"},
                                    {0x91, "FROZENSET"},
                                    {0x92, "NEWOBJ_EX"},
                                    {0x93, "STACK_GLOBAL"},
                                    {0x94, "MEMOIZE"},
                                    {0x95, "FRAME"},
                                    {0x96, "BYTEARRAY8"},
                                    {0x97, "NEXT_BUFFER"},
                                    {0x98, "READONLY_BUFFER"}};

// Returns the name of an opcode in Python's documentation, "REDUCE", or its number, "0xff", if there is none.
std::string opcode_name(uint8_t opcode) {
  for (const NamedOpcode& known : kOpcodes)
    if (known.opcode == opcode) return known.name;
  return fmt::format("{:#04x}", opcode);
}

using Kind = PickleValue::Kind;

constexpr size_t kLongestName = 255;  // bytes, of a module or of a name in it
constexpr std::string_view kDictionary = "collections.OrderedDict";

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::real:
      return "a floating-point number";
    case Kind::text:
      return "a string";
    case Kind::tuple:
      return "a tuple";
    case Kind::list:
      return "a list";
    case Kind::dictionary:
      return "a dictionary";
    case Kind::global:
      return "a global";
    case Kind::call:
      return "a call";
    case Kind::persistent:
      return "a storage";
  }
  return "";
}

// The stack machine. A mark keeps the values below it from the opcodes above it.
class Pickle::Machine {
 public:
  Machine(std::string_view bytes, const PickleRules& rules, Pickle& to)
      : rules_(rules), to_(to), size_(bytes.size()), rest_(bytes) {}

  // Runs to STOP, and returns the bytes after it.
  std::string_view run() {
    if (rest_.empty() || static_cast<Opcode>(rest_.front()) != Opcode::protocol) wrong("must begin with PROTO");
    for (size_t steps = 0; !done_; steps++) {
      if (steps == rules_.max_steps) wrong(fmt::format("must have at most {} opcodes", rules_.max_steps));
      opcode_ = number<uint8_t>();
      step();
    }
    return rest_;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail("{}: {} (at byte {} of the pickle)", rules_.where, what, size_ - rest_.size());
  }

  // Reading from the bytes.
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) wrong(fmt::format("ends within {} bytes", count));
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const size_t end = rest_.substr(0, kLongestName + 1).find('\n');
    if (end == std::string_view::npos) wrong(fmt::format("a name must have at most {} bytes", kLongestName));
    const std::string_view text = take(end);
    take(1);
    return text;
  }
  // A two's complement integer of any length.
  int64_t long_integer() {
    const std::string_view bytes = take(number<uint8_t>());
    if (bytes.size() > sizeof(int64_t))
      wrong(fmt::format("an integer must have at most 8 bytes (has {})", bytes.size()));
    int64_t value = !bytes.empty() && (bytes.back() & 0x80) ? -1 : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  void check_protocol() {
    const bool first = rest_.size() + 1 == size_;
    const uint8_t version = number<uint8_t>();
    if (!first || version < 2 || version > 5) wrong(fmt::format("PROTO must come first, with 2 to 5 (is {})", version));
  }
  void check_frame() {
    const uint64_t size = number<uint64_t>();
    if (size > rest_.size()) wrong(fmt::format("FRAME of {} bytes, of which {} are left", size, rest_.size()));
  }

  // The stack.
  void push(PickleValue value) { stack_.push_back(value); }
  void push_integer(int64_t value) { push({Kind::integer, value}); }
  void push_text(std::string_view text) { push({Kind::text, 0, text}); }
  void push_items(Kind kind, std::vector<PickleValue> items) {
    push({kind, std::ssize(to_.items_)});
    to_.items_.push_back(std::move(items));
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleValue& top() {
    if (stack_.size() <= floor()) wrong(opcode_name(opcode_) + " finds too few values");
    return stack_.back();
  }
  PickleValue& top(Kind kind) {
    if (!top().is(kind))
      wrong(fmt::format("{} expects {} (is {})", opcode_name(opcode_), name_of(kind), name_of(top().kind)));
    return top();
  }
  PickleValue pop() {
    const PickleValue value = top();
    stack_.pop_back();
    return value;
  }
  PickleValue pop(Kind kind) {
    top(kind);
    return pop();
  }
  std::vector<PickleValue> pop_last(size_t count) {
    if (stack_.size() - floor() < count) wrong(opcode_name(opcode_) + " finds too few values");
    const auto first = stack_.end() - std::ptrdiff_t(count);
    std::vector<PickleValue> values(first, stack_.end());
    stack_.erase(first, stack_.end());
    return values;
  }
  std::vector<PickleValue> pop_to_mark() {
    if (marks_.empty()) wrong(opcode_name(opcode_) + " finds no MARK");
    std::vector<PickleValue> values = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }

  // Opcodes that do more than push a value.
  void append(const std::vector<PickleValue>& values) {
    std::vector<PickleValue>& list = to_.items_[to_size(top(Kind::list).number)];
    list.insert(list.end(), values.begin(), values.end());
  }
  void set(const std::vector<PickleValue>& values) {
    if (values.size() % 2 != 0) wrong("a key has no value");
    std::vector<PickleValue>& members = to_.items_[to_size(top(Kind::dictionary).number)];
    members.insert(members.end(), values.begin(), values.end());
  }
  void get(uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) wrong(fmt::format("the memo has no value {}", place));
    push(found->second);
  }
  void put(uint32_t place) { memo_[place] = top(); }
  void global(std::string_view module, std::string_view name) {
    const std::string text = fmt::format("{}.{}", module, name);
    const auto known = std::ranges::find(rules_.globals, text);
    if (known == rules_.globals.end())
      fail("{}: global {} is not allowed{}", rules_.where, printable(text), rules_.accepted);
    push({Kind::global, 0, *known});
  }
  // A name as it is, or quoted if it is not plain.
  static std::string printable(const std::string& name) {
    const bool plain = name.size() <= 100 && std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
    return plain ? name : excerpt(name);
  }
  void reduce() {
    const PickleValue arguments = pop(Kind::tuple), function = pop(Kind::global);
    if (!function.is_global(kDictionary)) return push_items(Kind::call, {function, arguments});
    if (!to_.items(arguments).empty()) wrong("OrderedDict must be called without arguments");
    push_items(Kind::dictionary, {});
  }
  // Attributes: only those of a state dictionary, which say nothing of its tensors.
  void build() {
    const PickleValue state = pop(Kind::dictionary);
    const std::span<const PickleValue> members = to_.items(state);
    for (size_t i = 0; i < members.size(); i += 2)
      if (!members[i].is(Kind::text) || members[i].text != "_metadata") wrong("BUILD must set nothing but _metadata");
    top(Kind::dictionary);
  }

  void step() {
    switch (static_cast<Opcode>(opcode_)) {
      case Opcode::protocol:
        return check_protocol();
      case Opcode::frame:
        return check_frame();
      case Opcode::stop:
        return stop();
      case Opcode::none:
        return push({});
      case Opcode::yes:
        return push({Kind::boolean, 1});
      case Opcode::no:
        return push({Kind::boolean, 0});
      case Opcode::uint8:
        return push_integer(number<uint8_t>());
      case Opcode::uint16:
        return push_integer(number<uint16_t>());
      case Opcode::int32:
        return push_integer(number<int32_t>());
      case Opcode::long8:
        return push_integer(long_integer());
      case Opcode::real:
        take(sizeof(double));
        return push({Kind::real});
      case Opcode::bytes8:
      case Opcode::text8:
        return push_text(take(number<uint8_t>()));
      case Opcode::bytes32:
      case Opcode::text32:
        return push_text(take(number<uint32_t>()));
      case Opcode::empty_tuple:
        return push_items(Kind::tuple, {});
      case Opcode::tuple1:
        return push_items(Kind::tuple, pop_last(1));
      case Opcode::tuple2:
        return push_items(Kind::tuple, pop_last(2));
      case Opcode::tuple3:
        return push_items(Kind::tuple, pop_last(3));
      case Opcode::tuple:
        return push_items(Kind::tuple, pop_to_mark());
      case Opcode::empty_list:
        return push_items(Kind::list, {});
      case Opcode::append:
        return append(pop_last(1));
      case Opcode::appends:
        return append(pop_to_mark());
      case Opcode::empty_dictionary:
        return push_items(Kind::dictionary, {});
      case Opcode::set_item:
        return set(pop_last(2));
      case Opcode::set_items:
        return set(pop_to_mark());
      case Opcode::mark:
        return marks_.push_back(stack_.size());
      case Opcode::get8:
        return get(number<uint8_t>());
      case Opcode::get32:
        return get(number<uint32_t>());
      case Opcode::put8:
        return put(number<uint8_t>());
      case Opcode::put32:
        return put(number<uint32_t>());
      case Opcode::memoize:
        return put(static_cast<uint32_t>(memo_.size()));
      case Opcode::global: {
        const std::string_view module = line();
        return global(module, line());
      }
      case Opcode::stack_global: {
        const PickleValue name = pop(Kind::text), module = pop(Kind::text);
        if (std::max(name.text.size(), module.text.size()) > kLongestName)
          wrong(fmt::format("a name must have at most {} bytes", kLongestName));
        return global(module.text, name.text);
      }
      case Opcode::reduce:
        return reduce();
      case Opcode::build:
        return build();
      case Opcode::persistent:
        push_items(Kind::persistent, pop_last(1));
        return to_.persistent_.push_back(top());
    }
    fail("{}: opcode {} is not allowed{} (at byte {} of the pickle)", rules_.where, opcode_name(opcode_),
         rules_.accepted, size_ - rest_.size() - 1);
  }
  void stop() {
    if (!marks_.empty() || stack_.size() != 1) wrong("must end with one value");
    to_.root_ = stack_.front();
    done_ = true;
  }

  const PickleRules& rules_;
  Pickle& to_;
  size_t size_;
  std::string_view rest_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, PickleValue> memo_;
  uint8_t opcode_ = 0;  // the current one
  bool done_ = false;
};

Pickle::Pickle(std::string_view& bytes, const PickleRules& rules) { bytes = Machine(bytes, rules, *this).run(); }

std::span<const PickleValue> Pickle::items(const PickleValue& value) const {
  switch (value.kind) {
    case Kind::tuple:
    case Kind::list:
    case Kind::dictionary:
    case Kind::call:
    case Kind::persistent:
      return items_[to_size(value.number)];
    default:
      return {};
  }
}

const PickleValue* Pickle::member(const PickleValue& dictionary, std::string_view key) const {
  if (!dictionary.is(Kind::dictionary)) return nullptr;
  const std::span<const PickleValue> members = items(dictionary);
  for (size_t i = members.size(); i >= 2; i -= 2)
    if (members[i - 2].is(Kind::text) && members[i - 2].text == key) return &members[i - 1];
  return nullptr;
}

}  // namespace qkv
