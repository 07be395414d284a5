#include "device/accelerator.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/fail.h"
#include "core/system/plugin.h"
#include "core/to_size.h"

namespace qkv {
namespace {

std::atomic<Accelerator*> in_use = nullptr;

// Whether all functions of a table, which has nothing else, are there.
bool is_complete(const qkv_device& table) {
  using Function = void (*)();
  static_assert(sizeof(qkv_device) % sizeof(Function) == 0);
  const auto* const functions = reinterpret_cast<const Function*>(&table);
  return std::all_of(functions, functions + sizeof(qkv_device) / sizeof(Function), [](Function f) { return f; });
}

}  // namespace

const qkv_device& load_device(const std::string& path) {
  constexpr const char* kFunction = "qkv_device_1";
  const auto& table = load_plugin<qkv_device>(path, kFunction, "device plugin", PluginSymbols::local);
  if (!is_complete(table))
    fail("{}: {} returns a table with missing functions; expected those of qkv/device.h", path, kFunction);
  return table;
}

// Outlives the Accelerator while an arena holds its memory.
class Accelerator::Memory : public MemorySource {
 public:
  Memory(const qkv_device& table, std::string name, size_t bytes)
      : table_(table), name_(std::move(name)), bytes_(bytes) {}

  void* reserve(size_t bytes) override {
    const std::lock_guard lock(mutex());
    void* address = nullptr;
    if (table_.reserve(bytes, &address) != 0)
      fail("{}: {} MiB of addresses cannot be reserved: {}", name_, bytes >> 20, table_.error());
    return address;
  }
  void release(void* base, size_t bytes) noexcept override {
    const std::lock_guard lock(mutex());
    table_.synchronize();  // commands may still use it
    table_.release(base, bytes);
  }
  bool commit(void* base, size_t begin, size_t end) override {
    const std::lock_guard lock(mutex());
    if (table_.commit(base, begin, end) == 0) return true;
    error_ = table_.error();
    return false;
  }
  std::string device() const override { return name_; }
  std::string error() const override { return error_; }
  size_t bytes() const override { return bytes_; }

 private:
  const qkv_device& table_;
  const std::string name_;  // of the device
  const size_t bytes_;
  std::string error_;
};

Accelerator::Accelerator(const qkv_device& table, int device) : table_(table) {
  if (const Accelerator* other = in_use) fail("{}: cannot be used in addition to {}", table.name(), other->name_);
  if (const char* const missing = table.missing()) fail("{}: {}", table.name(), missing);
  if (device < 0 || device >= table.count())
    fail("{}: device must be from 0 to {} (is {})", table.name(), table.count() - 1, device);
  qkv_device_info info = {};
  if (table.describe(device, &info) != 0 || table.open(device) != 0)
    fail("{}: device {} cannot be used: {}", table.name(), device, table.error());
  name_ = info.name;
  memory_ = std::make_shared<Memory>(table, name_, info.bytes);
  staging_ = std::make_unique<MemoryRange>(memory_, 0);
  set_device_memory(memory_);
  in_use = this;
}

Accelerator::~Accelerator() {
  table_.synchronize();
  set_device_memory(nullptr);
  in_use = nullptr;
}

std::recursive_mutex& Accelerator::mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

Accelerator& Accelerator::current() {
  if (!in_use) fail("device: none is in use");
  return *in_use;
}

void Accelerator::synchronize() {
  const std::lock_guard lock(mutex());
  if (table_.synchronize() != 0) fail("{}: synchronize: {}", name_, table_.error());
}

// Commands are done in order, so staging memory that a command has released can be reused immediately.
const void* Accelerator::on_device(std::span<const std::byte> host) {
  if (host.empty()) return nullptr;
  for (const Uploaded& u : uploaded_)
    if (host.data() >= u.host.data() && host.data() + host.size() <= u.host.data() + u.host.size())
      return u.device + (host.data() - u.host.data());
  void* const to = staging_->take(host.size());
  if (table_.upload(to, host.data(), host.size()) != 0) fail("{}: upload: {}", name_, table_.error());
  return to;
}

Accelerator::Upload::Upload(std::span<const std::span<const std::byte>> numbers) : accelerator_(current()) {
  const std::lock_guard lock(accelerator_.mutex());
  before_ = accelerator_.uploaded_.size();
  staging_before_ = accelerator_.staging_->used();
  std::vector<Uploaded> copies;  // none counts if one fails
  for (const std::span<const std::byte> host : numbers)
    if (!host.empty()) copies.push_back({host, static_cast<const std::byte*>(accelerator_.on_device(host))});
  accelerator_.uploaded_.insert(accelerator_.uploaded_.end(), copies.begin(), copies.end());
}

Accelerator::Upload::~Upload() {
  const std::lock_guard lock(accelerator_.mutex());
  accelerator_.uploaded_.resize(before_);
  accelerator_.staging_->release_from(staging_before_);
}

Accelerator::Command::Command(const char* op)
    : accelerator_(current()), lock_(accelerator_.mutex()), op_(op), staging_before_(accelerator_.staging_->used()) {}

Accelerator::Command::~Command() { accelerator_.staging_->release_from(staging_before_); }

void Accelerator::Command::operator()(int status) const {
  if (status != 0) fail("{}: {}: {}", accelerator_.name_, op_, accelerator_.table_.error());
}

}  // namespace qkv
