#include "convert/formats/torch_storages.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "convert/formats/stored_zip.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

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

}  // namespace

size_t old_torch_header(std::string_view bytes) {
  constexpr size_t kProtocol = 2, kFrame = 9;  // bytes of PROTO and FRAME; the latter from protocol 4 on
  if (!bytes.starts_with('\x80')) return 0;
  for (const size_t begin : {kProtocol, kProtocol + kFrame})
    if (bytes.size() > begin && bytes.substr(begin).starts_with(kMagic)) return begin + kMagic.size();
  return 0;
}

TorchObjects read_torch_objects(Bytes bytes, const std::string& path) { return Container(bytes, path).read(); }

const TorchStorage& storage_of(const TorchObjects& objects, const PickleValue& persistent) {
  return objects.storages.at(declaration(objects.pickle, persistent)->key);
}

}  // namespace qkv
