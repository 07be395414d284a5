#include "ranks/rank_messages.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr uint32_t kRankMagic = 0x72766b71;  // "qkvr"
constexpr uint32_t kProtocol = 3;            // of the messages between ranks
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

}  // namespace qkv
