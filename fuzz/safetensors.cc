// A safetensors file: every tensor, and what they hold together.
#include "io/weights/safetensors.h"

#include "fuzz/reader.h"

void qkv::fuzz::fuzz_safetensors(std::string_view bytes) {
  const MemoryFile file(bytes);
  const Safetensors tensors = Safetensors::open(file.path());
  std::vector<std::byte> content(bytes.size());
  size_t total = 0;
  for (const std::string& name : tensors.names()) {
    const TensorView* tensor = tensors.find(name);
    require(tensor != nullptr, "a tensor has the name that is listed");
    total += tensor->data.size();
    require(total <= bytes.size(), "tensors hold no more than the file");
    tensors.read(name, tensor->dtype, tensor->shape, std::span(content).first(tensor->data.size()));
  }
}
