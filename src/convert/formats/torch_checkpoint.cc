#include "convert/formats/torch_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "convert/formats/foreign_tensors.h"
#include "convert/formats/torch_storages.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"

namespace qkv {
namespace {

using Kind = PickleValue::Kind;
using Values = std::span<const PickleValue>;

constexpr size_t kMaxDimensions = 8, kLongestTensorName = 1024;
constexpr uint64_t kMaxShare = 8;  // times the size of the file: tied tensors have several names
constexpr const char* kInner[] = {"state_dict", "model_state_dict", "model"};

bool is_zip(std::string_view bytes) { return bytes.starts_with(std::string_view("PK\3\4", 4)); }

// A view of a storage, in elements.
struct StridedView {
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;

  // The number of elements from the beginning of the storage to the end of the view; none if it overflows.
  std::optional<int64_t> end() const {
    int64_t last = offset, step = 0;
    for (size_t i = 0; i < shape.size(); i++)
      if (__builtin_mul_overflow(shape[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last))
        return {};
    if (__builtin_add_overflow(last, 1, &last)) return {};
    return last;
  }
  bool empty() const { return std::ranges::find(shape, 0) != shape.end(); }
  // Whether the elements are adjacent, row by row.
  bool contiguous() const {
    int64_t expected = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      if (shape[i] == 1) continue;
      if (strides[i] != expected) return false;
      expected *= shape[i];  // bounded by the storage
    }
    return true;
  }
};

// Copies the elements of a view, which lies in `from`, row by row.
std::vector<std::byte> copy_elements(const StridedView& view, size_t element, std::span<const std::byte> from,
                                     size_t bytes) {
  std::vector<std::byte> to(bytes);
  std::vector<int64_t> index(view.shape.size());
  int64_t place = view.offset;
  for (size_t done = 0; done < bytes; done += element) {
    std::memcpy(to.data() + done, from.data() + to_size(place) * element, element);
    for (size_t i = index.size(); i-- > 0;) {
      place += view.strides[i];
      if (++index[i] < view.shape[i]) break;
      place -= view.strides[i] * view.shape[i];
      index[i] = 0;
    }
  }
  return to;
}

// Makes views of the tensors of a checkpoint.
class TensorReader {
 public:
  TensorReader(const TorchObjects& objects, const std::string& path, uint64_t file_bytes)
      : objects_(objects), pickle_(objects.pickle), path_(path), file_bytes_(file_bytes) {}

  // The dictionary of tensors.
  const PickleValue& dictionary() const {
    const PickleValue& root = pickle_.root();
    if (!root.is(Kind::dictionary)) fail("{}: must be a dictionary of tensors (is {})", path_, name_of(root.kind));
    for (const char* name : kInner)
      if (const PickleValue* inner = pickle_.member(root, name); inner && inner->is(Kind::dictionary)) return *inner;
    return root;
  }

  TensorView view(const std::string& name, const PickleValue& value, std::vector<std::vector<std::byte>>& copies) {
    const Values arguments = tensor_arguments(name, value);
    const TorchStorage& storage = storage_of(objects_, arguments[0]);
    const StridedView place{arguments[1].number, sizes(name, arguments[2]), sizes(name, arguments[3])};
    const std::string type = describe(storage.dtype, place.shape);
    if (place.shape.size() != place.strides.size() || place.offset < 0)
      fail("{}: {} has {} strides and offset {}", in_file(path_, name), type, place.strides.size(), place.offset);
    if (place.empty()) return {storage.dtype, place.shape, {}};
    const std::optional<int64_t> end = place.end();
    if (!end || *end > storage.elements)
      fail("{}: {} is outside its storage of {} elements", in_file(path_, name), type, storage.elements);
    const auto bytes = byte_count(storage.dtype, place.shape);
    if (!bytes || *bytes > storage.data.size())
      fail("{}: {} repeats elements of its storage of {}", in_file(path_, name), type, storage.elements);
    count(name, *bytes, total_, kMaxShare * file_bytes_);
    const size_t element = storage.data.size() / to_size(storage.elements);
    if (place.contiguous())
      return {storage.dtype, place.shape, storage.data.subspan(to_size(place.offset) * element, *bytes)};
    count(name, *bytes, copied_, file_bytes_);
    copies.push_back(copy_elements(place, element, storage.data, *bytes));
    return {storage.dtype, place.shape, copies.back()};
  }

 private:
  void count(const std::string& name, uint64_t bytes, uint64_t& total, uint64_t most) const {
    total += bytes;
    if (total > most) fail("{}: the tensors are too large for a file of {} bytes", in_file(path_, name), file_bytes_);
  }

  // The arguments of _rebuild_tensor_v2: storage, offset, sizes, strides, and others that say nothing of the numbers.
  Values tensor_arguments(const std::string& name, const PickleValue& value) const {
    const PickleValue* tensor = &value;
    if (const Values call = call_of(value); !call.empty() && call[0].is_global("torch._utils._rebuild_parameter")) {
      const Values arguments = pickle_.items(call[1]);
      if (arguments.size() != 3) wrong(name, value);
      tensor = &arguments[0];
    }
    const Values call = call_of(*tensor);
    if (call.empty()) wrong(name, *tensor);
    const Values arguments = pickle_.items(call[1]);
    const size_t n = arguments.size();
    const bool old = call[0].is_global("torch._utils._rebuild_tensor") && n == 4,
               current = call[0].is_global("torch._utils._rebuild_tensor_v2") && (n == 6 || n == 7);
    if (!(old || current) || !arguments[0].is(Kind::persistent) || !arguments[1].is(Kind::integer)) wrong(name, value);
    if (n == 7 && !arguments[6].is(Kind::none) && !pickle_.items(arguments[6]).empty())
      fail("{}: conjugate and negative views are not supported", in_file(path_, name));
    return arguments;
  }
  Values call_of(const PickleValue& value) const { return value.is(Kind::call) ? pickle_.items(value) : Values(); }

  std::vector<int64_t> sizes(const std::string& name, const PickleValue& value) const {
    const Values items = pickle_.items(value);
    if (!value.is(Kind::tuple) || items.size() > kMaxDimensions)
      fail("{}: sizes and strides must be tuples of at most {} integers", in_file(path_, name), kMaxDimensions);
    std::vector<int64_t> numbers;
    for (const PickleValue& item : items) {
      if (!item.is(Kind::integer) || item.number < 0)
        fail("{}: sizes and strides must be integers from 0 on (one is {})", in_file(path_, name),
             item.is(Kind::integer) ? std::to_string(item.number) : name_of(item.kind));
      numbers.push_back(item.number);
    }
    return numbers;
  }
  [[noreturn]] void wrong(const std::string& name, const PickleValue& value) const {
    fail("{}: {} must be a tensor (is {})", path_, excerpt(name),
         value.is(Kind::call) ? "a call that makes another object" : name_of(value.kind));
  }

  const TorchObjects& objects_;
  const Pickle& pickle_;
  const std::string& path_;
  uint64_t file_bytes_, total_ = 0, copied_ = 0;
};

}  // namespace

bool TorchCheckpoint::recognizes(const std::string& path) {
  const std::string bytes = read_beginning(path, 32);
  return is_zip(bytes) || old_torch_header(bytes) > 0;
}

TorchCheckpoint TorchCheckpoint::open(const std::string& path) {
  TorchCheckpoint checkpoint{MappedFile(path)};
  const std::span<const std::byte> bytes = checkpoint.file_.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("version https://git-lfs"))
    fail("{}: is a pointer of Git LFS; download the file that it stands for", path);
  if (!is_zip(text) && old_torch_header(text) == 0)
    fail("{}: not a PyTorch checkpoint: must be a file that torch.save wrote", path);
  const TorchObjects objects = read_torch_objects(bytes, path);
  TensorReader reader(objects, path, bytes.size());
  const std::span<const PickleValue> members = objects.pickle.items(reader.dictionary());
  for (size_t i = 0; i < members.size(); i += 2) {
    if (!members[i].is(PickleValue::Kind::text) || members[i].text.size() > kLongestTensorName)
      fail("{}: the name of a tensor must be a string of at most {} bytes", path, kLongestTensorName);
    const std::string name(members[i].text);
    if (!checkpoint.views_.emplace(name, reader.view(name, members[i + 1], checkpoint.copies_)).second)
      fail("{}: is twice in the dictionary", in_file(path, name));
  }
  return checkpoint;
}

}  // namespace qkv
