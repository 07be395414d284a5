// A checkpoint of PyTorch, in either container.
#include "convert/formats/torch_checkpoint.h"
#include "fuzz/reader.h"

void qkv::fuzz::fuzz_pickle(std::string_view bytes) {
  const MemoryFile memory(bytes);
  const TorchCheckpoint file = TorchCheckpoint::open(memory.path());
  unsigned sum = 0;
  for (const auto& [name, tensor] : file.views()) {
    require(byte_count(tensor.dtype, tensor.shape) == tensor.data.size(), "a tensor has the bytes of its shape");
    require(tensor.data.size() <= bytes.size(), "a tensor is not larger than the file");
    for (const std::byte b : tensor.data) sum += static_cast<unsigned>(b);
  }
  [[maybe_unused]] static volatile unsigned read;  // so that every byte is read
  read = sum;
}
