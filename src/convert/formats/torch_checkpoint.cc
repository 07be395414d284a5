#include "convert/formats/torch_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "convert/formats/foreign_tensors.h"
#include "convert/formats/pickle.h"
#include "convert/formats/stored_zip.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// The storages of a PyTorch checkpoint: arrays of elements, of which tensors are views.

struct TorchStorage {
  DType dtype = DType::f32;
  int64_t elements = 0;
  std::span<const std::byte> data = {};
};

using TorchStorages = std::map<std::string_view, TorchStorage>;  // by key

// The pickle of a checkpoint's objects, and the storages that it names.
struct TorchObjects {
  Pickle pickle;
  TorchStorages storages;
};

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

constexpr std::string_view kMagic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);  // after PROTO
constexpr int64_t kVersion = 1001;
constexpr size_t kLongestKey = 255;
constexpr size_t kShort = 1000, kLong = size_t{1} << 17;  // opcodes; a long pickle may have more in a large file

constexpr std::string_view kGlobals[] = {
    "collections.OrderedDict", "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter", "torch.Size",
    // storages
    "torch.FloatStorage", "torch.DoubleStorage", "torch.HalfStorage", "torch.BFloat16Storage", "torch.LongStorage",
    "torch.IntStorage", "torch.ShortStorage", "torch.CharStorage", "torch.ByteStorage", "torch.BoolStorage",
    // types, among the settings of a training
    "torch.float32", "torch.float64", "torch.float16", "torch.bfloat16", "torch.int64", "torch.int32", "torch.int16",
    "torch.int8", "torch.uint8", "torch.bool"};

struct StorageClass {
  std::string_view name;
  DType dtype;
  int64_t bytes;  // of an element
};
constexpr StorageClass kStorages[] = {{"torch.FloatStorage", DType::f32, 4}, {"torch.DoubleStorage", DType::f64, 8},
                                      {"torch.HalfStorage", DType::f16, 2},  {"torch.BFloat16Storage", DType::bf16, 2},
                                      {"torch.LongStorage", DType::i64, 8},  {"torch.IntStorage", DType::i32, 4},
                                      {"torch.ShortStorage", DType::i16, 2}, {"torch.CharStorage", DType::i8, 1},
                                      {"torch.ByteStorage", DType::u8, 1},   {"torch.BoolStorage", DType::boolean, 1}};

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The description of a persistent object: ("storage", class, key, device, number of elements).
struct Declaration {
  const StorageClass* type = nullptr;
  std::string_view key;
  int64_t elements = 0;
};

std::optional<Declaration> declaration(const Pickle& pickle, const PickleValue& persistent) {
  const PickleValue& tuple = pickle.items(persistent).front();
  const std::span<const PickleValue> parts = pickle.items(tuple);
  const bool plain = parts.size() == 5 || (parts.size() == 6 && parts[5].is(Kind::none));
  if (!plain || !tuple.is(Kind::tuple) || !parts[0].is(Kind::text) || parts[0].text != "storage" ||
      !parts[1].is(Kind::global) || !parts[2].is(Kind::text) || parts[2].text.size() > kLongestKey ||
      !parts[4].is(Kind::integer))
    return {};
  const auto* type = std::ranges::find(kStorages, parts[1].text, &StorageClass::name);
  if (type == std::end(kStorages) || parts[4].number < 0) return {};
  return Declaration{type, parts[2].text, parts[4].number};
}

// Returns the size of the pickle with the magic number with which the older container begins; 0 for other files.
size_t old_torch_header(std::string_view bytes) {
  constexpr size_t kProtocol = 2, kFrame = 9;  // bytes of PROTO and FRAME; the latter from protocol 4 on
  if (!bytes.starts_with('\x80')) return 0;
  for (const size_t begin : {kProtocol, kProtocol + kFrame})
    if (bytes.size() > begin && bytes.substr(begin).starts_with(kMagic)) return begin + kMagic.size();
  return 0;
}

// A container, from whose bytes the pickles and storages are taken in order.
class Container {
 public:
  Container(Bytes bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  TorchObjects read() { return old_torch_header(text_of(bytes_)) > 0 ? read_old() : read_zip(); }

 private:
  PickleRules rules(size_t max_steps = kLong) const {
    PickleRules rules{.where = path_, .globals = kGlobals};
    rules.accepted = " in a PyTorch checkpoint (must be a dictionary of tensors, such as state_dict() of a model)";
    rules.max_steps = max_steps + (max_steps == kLong ? bytes_.size() / 256 : 0);
    return rules;
  }

  TorchObjects with_declarations(Pickle pickle) const {
    TorchStorages storages;
    for (const PickleValue& persistent : pickle.persistent()) {
      const std::optional<Declaration> d = declaration(pickle, persistent);
      if (!d) fail("{}: the description of a storage is not one that torch.save writes", path_);
      const auto [place, added] = storages.try_emplace(d->key, TorchStorage{d->type->dtype, d->elements});
      if (!added && (place->second.dtype != d->type->dtype || place->second.elements != d->elements))
        fail("{}: storage {} is described in two ways", path_, excerpt(d->key));
    }
    return {std::move(pickle), std::move(storages)};
  }
  // Gives a storage its bytes: the first ones of `data`, or all if `whole`.
  void fill(std::string_view key, TorchStorage& storage, Bytes data, bool whole) const {
    const int64_t sizes[] = {storage.elements};
    const std::optional<uint64_t> size = byte_count(storage.dtype, sizes);
    if (!size || *size > data.size() || (whole && *size != data.size()))
      fail("{}: storage {} of {} does not have this size in the file ({} bytes{})", path_, excerpt(key),
           describe(storage.dtype, sizes), data.size(), whole ? "" : " are left");
    storage.data = data.first(*size);
  }

  TorchObjects read_zip() const {
    const StoredZip zip(bytes_, path_);
    const ZipMember* pickle = nullptr;
    for (const ZipMember& member : zip.members()) {
      if (!member.name.ends_with("/data.pkl")) continue;
      if (pickle)
        fail("{}: must hold one checkpoint (holds {} and {})", path_, excerpt(pickle->name), excerpt(member.name));
      pickle = &member;
    }
    if (!pickle) fail("{}: not a PyTorch checkpoint: the archive has no data.pkl", path_);
    const std::string folder(pickle->name.substr(0, pickle->name.rfind('/') + 1));
    if (folder.size() > kLongestKey) fail("{}: the name of the folder with data.pkl is too long", path_);
    if (zip.find(folder + "constants.pkl"))
      fail("{}: TorchScript is not read; expected state_dict() of the model, saved by torch.save", path_);
    const ZipMember* order = zip.find(folder + "byteorder");
    if (order && text_of(order->data) != "little") fail("{}: the byte order must be little", path_);

    std::string_view text = text_of(pickle->data);
    TorchObjects objects = with_declarations(Pickle(text, rules()));
    if (!text.empty()) fail("{}: {} bytes follow the pickle in data.pkl", path_, text.size());
    for (auto& [key, storage] : objects.storages) {
      const ZipMember* member = zip.find(fmt::format("{}data/{}", folder, key));
      if (!member) fail("{}: storage {} is missing", path_, excerpt(key));
      fill(key, storage, member->data, true);
    }
    return objects;
  }

  TorchObjects read_old() const {
    std::string_view rest = text_of(bytes_);
    rest.remove_prefix(old_torch_header(rest));
    const Pickle version(rest, rules(kShort)), machine(rest, rules(kShort));
    if (!version.root().is(Kind::integer) || version.root().number != kVersion)
      fail("{}: the version of the container must be {}", path_, kVersion);
    const PickleValue* little = machine.member(machine.root(), "little_endian");
    if (!little || !little->is(Kind::boolean) || little->number != 1) fail("{}: the byte order must be little", path_);
    TorchObjects objects = with_declarations(Pickle(rest, rules()));
    const Pickle keys(rest, rules(kShort + 4 * objects.storages.size()));
    if (!keys.root().is(Kind::list)) fail("{}: the list of storages must be a list", path_);
    for (const PickleValue& key : keys.items(keys.root())) {
      const auto place = objects.storages.find(key.text);
      if (!key.is(Kind::text) || place == objects.storages.end() || place->second.data.data())
        fail("{}: the list of storages names {}, which is unknown or named twice", path_, excerpt(key.text));
      int64_t elements = 0;
      if (rest.size() < sizeof elements) fail("{}: ends before storage {}", path_, excerpt(key.text));
      std::memcpy(&elements, rest.data(), sizeof elements);
      rest.remove_prefix(sizeof elements);
      TorchStorage& storage = place->second;
      if (elements != storage.elements)
        fail("{}: storage {} must have {} elements (has {})", path_, excerpt(key.text), storage.elements, elements);
      fill(key.text, storage, std::as_bytes(std::span(rest)), false);
      rest.remove_prefix(storage.data.size());
    }
    for (const auto& [key, storage] : objects.storages)
      if (!storage.data.data()) fail("{}: storage {} is missing", path_, excerpt(key));
    if (!rest.empty()) fail("{}: {} bytes at the end belong to no storage", path_, rest.size());
    return objects;
  }

  Bytes bytes_;
  const std::string& path_;
};

// Reads either container; `path` names the file in errors. Texts and storages stay in `bytes`. Throws Error unless the
// storages are as large as the pickle says.
TorchObjects read_torch_objects(Bytes bytes, const std::string& path) { return Container(bytes, path).read(); }

// Returns the storage that a persistent object of the pickle names.
const TorchStorage& storage_of(const TorchObjects& objects, const PickleValue& persistent) {
  return objects.storages.at(declaration(objects.pickle, persistent)->key);
}

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
