// The device that the process uses: its plugin, its memory, and copies of numbers of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/system/memory_source.h"
#include "qkv/device.h"

namespace qkv {

// Loads a device plugin. Throws Error, naming the path, if it cannot be loaded or is not a device plugin. Never
// unloaded.
const qkv_device& load_device(const std::string& path);

// At most one exists at a time. Arenas may outlive it, but the elements of the device in them cannot be used any more.
class Accelerator {
 public:
  // Opens a device of a plugin. Throws Error if something is missing, or if there is no such device.
  explicit Accelerator(const qkv_device& table, int device = 0);
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  // Returns the device in use. Throws Error if there is none.
  static Accelerator& current();

  const std::string& name() const { return name_; }  // such as "NVIDIA H200"
  // Returns the plugin and what it uses, such as "CUDA 13.0, driver 580.95".
  std::string plugin() const { return table_.name(); }

  // Waits for all commands.
  void synchronize();

  // Numbers of the host, such as the ids of a batch, that the ops of a pass read several times. They are copied to the
  // device once and must not change while this exists.
  class Upload {
   public:
    explicit Upload(std::span<const std::span<const std::byte>> numbers);
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;

   private:
    Accelerator& accelerator_;
    size_t before_;          // entries of uploaded_
    size_t staging_before_;  // bytes of staging_
  };

  // Exclusive use of the device for several commands, and uploads of their numbers.
  class Exclusive {
   public:
    Exclusive() : lock_(mutex()) {}

   private:
    const std::lock_guard<std::recursive_mutex> lock_;
  };

  // Exclusive use of the device for one command.
  class Command {
   public:
    explicit Command(const char* op);
    ~Command();
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    const qkv_device* operator->() const { return &accelerator_.table_; }
    // Returns the copy of the numbers on the device, which exists until the command ends; null if there are none.
    template <class T>
    const T* numbers(std::span<const T> host) {
      return static_cast<const T*>(accelerator_.on_device(std::as_bytes(host)));
    }
    // Throws Error with the description of the plugin unless the status is 0.
    void operator()(int status) const;

   private:
    Accelerator& accelerator_;
    const std::lock_guard<std::recursive_mutex> lock_;
    const char* op_;
    size_t staging_before_;
  };

 private:
  class Memory;
  struct Uploaded {
    std::span<const std::byte> host;
    const std::byte* device;
  };
  // Returns the lock of all commands. It is recursive: a command takes memory for the numbers that it reads.
  static std::recursive_mutex& mutex();
  const void* on_device(std::span<const std::byte> host);

  const qkv_device& table_;
  std::string name_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<MemoryRange> staging_;
  std::vector<Uploaded> uploaded_;
};

}  // namespace qkv
