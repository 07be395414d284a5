#include "ranks/rank_messages.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr uint32_t kRankMagic = 0x72766b71;  // "qkvr"
constexpr uint32_t kProtocol = 4;            // of the messages between ranks
constexpr int64_t kMostFileBytes = int64_t{1} << 40;
constexpr size_t kMostText = 200;

enum class Kind : uint32_t { hello = 1, file = 2, value = 3, command = 4, part = 5 };

// Appends numbers and texts to a message.
class Writer {
 public:
  explicit Writer(Kind kind) {
    add(kRankMagic);
    add(kProtocol);
    add(kind);
  }
  template <class Number>
  void add(Number number) {
    append({reinterpret_cast<const char*>(&number), sizeof number});
  }
  void add_text(std::string_view text) {
    text = text.substr(0, kMostText);
    add(static_cast<uint32_t>(text.size()));
    append(text);
  }
  const MessageBytes& bytes() const { return bytes_; }

 private:
  void append(std::string_view text) {
    if (text.size() > bytes_.size() - size_) fail("a message between ranks has more than {} bytes", bytes_.size());
    std::memcpy(bytes_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }

  MessageBytes bytes_ = {};
  size_t size_ = 0;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, Kind kind) : bytes_(bytes) {
    const auto magic = take<uint32_t>(), protocol = take<uint32_t>(), found = take<uint32_t>();
    if (magic != kRankMagic) fail("sent a message that does not come from qkv");
    if (protocol != kProtocol)
      fail("speaks version {} of the protocol between ranks; expected {}", protocol, kProtocol);
    if (found != static_cast<uint32_t>(kind))
      fail("sent a message of kind {}; expected {}", found, static_cast<uint32_t>(kind));
  }
  template <class Number>
  Number take() {
    Number number;
    std::memcpy(&number, part(sizeof number).data(), sizeof number);
    return number;
  }
  std::string take_text() {
    const auto size = take<uint32_t>();
    if (size > kMostText) fail("sent a text of {} bytes; at most {} are accepted", size, kMostText);
    const std::span<const std::byte> text = part(size);
    std::string result(reinterpret_cast<const char*>(text.data()), text.size());
    if (std::ranges::any_of(result, [](char c) { return c < 0x20 || c == 0x7f; }))
      fail("sent a text with characters other than printable ASCII");
    return result;
  }

 private:
  std::span<const std::byte> part(size_t size) {
    if (size > bytes_.size()) fail("sent a message that is too short");
    const std::span<const std::byte> first = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return first;
  }

  std::span<const std::byte> bytes_;
};

// Returns whether a file of this name lies in the directory that it is written to.
bool is_file_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return name.size() <= kMostText && !name.starts_with('.') && std::ranges::all_of(name, is_allowed);
}

bool is_short(const ListLimits& limits) { return limits.bound > 0 && limits.bound <= int64_t{1} << 16; }

template <class Number>
void append(std::span<const int32_t> list, std::vector<std::byte>& to) {
  const size_t size = to.size();
  to.resize(size + list.size() * sizeof(Number));
  std::byte* next = to.data() + size;
  for (const int32_t value : list) {
    const auto number = static_cast<Number>(value);
    std::memcpy(next, &number, sizeof number);
    next += sizeof number;
  }
}

template <class Number>
std::vector<int32_t> numbers_of(std::span<const std::byte> bytes) {
  std::vector<int32_t> list(bytes.size() / sizeof(Number));
  const std::byte* next = bytes.data();
  for (int32_t& value : list) {
    Number number;
    std::memcpy(&number, next, sizeof number);
    value = static_cast<int32_t>(number);
    next += sizeof number;
  }
  return list;
}

std::span<const std::byte> take(std::span<const std::byte>& from, size_t size) {
  if (size > from.size()) fail("sent a message that is too short");
  const std::span<const std::byte> first = from.first(size);
  from = from.subspan(size);
  return first;
}

constexpr uint32_t kWatchMagic = 0x77766b71;  // "qkvw"

using Head = std::array<uint32_t, 3>;  // magic, kind, bytes of text

// Returns whether a terminal can print the text as one line.
bool is_line(const std::string& text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

MessageBytes write_hello(const Hello& hello) {
  Writer writer(Kind::hello);
  writer.add_text(hello.version.substr(0, 100));
  writer.add_text(hello.isa.substr(0, 40));
  writer.add_text(hello.host.substr(0, 200));
  for (const int32_t number : {hello.threads, hello.allowed, hello.processors}) writer.add(number);
  return writer.bytes();
}

Hello read_hello(std::span<const std::byte> bytes) {
  Reader reader(bytes, Kind::hello);
  Hello hello;
  hello.version = reader.take_text();
  hello.isa = reader.take_text();
  hello.host = reader.take_text();
  for (int32_t* number : {&hello.threads, &hello.allowed, &hello.processors}) *number = reader.take<int32_t>();
  if (hello.threads < 1) fail("sent {} as its number of threads; must be at least 1", hello.threads);
  return hello;
}

MessageBytes write_file_header(const FileHeader& header) {
  Writer writer(Kind::file);
  writer.add_text(header.name);
  writer.add(header.size);
  return writer.bytes();
}

FileHeader read_file_header(std::span<const std::byte> bytes) {
  Reader reader(bytes, Kind::file);
  FileHeader header;
  header.name = reader.take_text();
  header.size = reader.take<int64_t>();
  if (!is_file_name(header.name)) fail("sent \"{}\", which is not the name of a file of a run", header.name);
  if (header.size < 0 || header.size > kMostFileBytes)
    fail("sent {} as the size of {}; must be between 0 and {}", header.size, header.name, kMostFileBytes);
  return header;
}

MessageBytes write_value(const std::string& value) {
  Writer writer(Kind::value);
  writer.add_text(value);
  return writer.bytes();
}

std::string read_value(std::span<const std::byte> bytes) { return Reader(bytes, Kind::value).take_text(); }

MessageBytes write_part_header(const PartHeader& header) {
  Writer writer(Kind::part);
  writer.add(header.items);
  writer.add(header.size);
  return writer.bytes();
}

PartHeader read_part_header(std::span<const std::byte> bytes, int64_t items, int64_t most) {
  Reader reader(bytes, Kind::part);
  PartHeader header;
  header.items = reader.take<int64_t>();
  header.size = reader.take<int64_t>();
  if (header.items != items) fail("sent results for {} items; expected {}", header.items, items);
  if (header.size < 0 || header.size > items * most)
    fail("sent {} bytes of results for {} items; must be between 0 and {}", header.size, items, items * most);
  return header;
}

MessageBytes write_command(Command command, int64_t step) {
  Writer writer(Kind::command);
  writer.add(command);
  writer.add(step);
  return writer.bytes();
}

Command read_command(std::span<const std::byte> bytes, int64_t step) {
  Reader reader(bytes, Kind::command);
  const auto command = reader.take<int32_t>();
  const auto at = reader.take<int64_t>();
  if (command < 1 || command > 7) fail("sent command {}; expected 1 to 7", command);
  if (at != step) fail("is at step {}; expected {}", at, step);
  return static_cast<Command>(command);
}

size_t ListLimits::most_bytes() const {
  return sizeof(uint32_t) + to_size(most) * (is_short(*this) ? sizeof(uint16_t) : sizeof(int32_t));
}

void append_list(std::span<const int32_t> list, const ListLimits& limits, std::vector<std::byte>& to) {
  const auto length = static_cast<int32_t>(list.size());
  append<int32_t>({&length, 1}, to);
  is_short(limits) ? append<uint16_t>(list, to) : append<int32_t>(list, to);
}

std::vector<int32_t> take_list(std::span<const std::byte>& from, const ListLimits& limits) {
  uint32_t length;
  std::memcpy(&length, take(from, sizeof length).data(), sizeof length);
  if (int64_t{length} > limits.most) fail("sent a list of {} numbers; at most {} are accepted", length, limits.most);
  const bool is_16_bit = is_short(limits);
  const std::span<const std::byte> bytes = take(from, length * (is_16_bit ? sizeof(uint16_t) : sizeof(int32_t)));
  std::vector<int32_t> list = is_16_bit ? numbers_of<uint16_t>(bytes) : numbers_of<int32_t>(bytes);
  const auto is_outside = [&](int32_t value) { return value < 0 || value >= limits.bound; };
  if (const auto bad = std::ranges::find_if(list, is_outside); limits.bound > 0 && bad != list.end())
    fail("sent the number {}; must be between 0 and {}", *bad, limits.bound - 1);
  return list;
}

void write_watch_message(const WatchMessage& message, std::span<std::byte, kWatchBytes> to) {
  std::string text = message.text.substr(0, kMostWatchText);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  const Head head = {kWatchMagic, static_cast<uint32_t>(message.kind), static_cast<uint32_t>(text.size())};
  std::ranges::fill(to, std::byte{0});
  std::memcpy(to.data(), head.data(), sizeof head);
  std::memcpy(to.data() + sizeof head, text.data(), text.size());
}

WatchMessage read_watch_message(std::span<const std::byte, kWatchBytes> bytes) {
  Head head;
  std::memcpy(head.data(), bytes.data(), sizeof head);
  const auto [magic, kind, size] = head;
  if (magic != kWatchMagic || kind < 1 || kind > 3 || size > kMostWatchText)
    fail("a watch message of kind {} with {} bytes of text; expected kind 1 to 3 and at most {} bytes", kind, size,
         kMostWatchText);
  const auto* const first = reinterpret_cast<const char*>(bytes.data()) + sizeof head;
  WatchMessage message{static_cast<WatchKind>(kind), {first, size}};
  if (!is_line(message.text)) fail("a watch message whose text is not one line of printable characters");
  return message;
}

}  // namespace qkv
