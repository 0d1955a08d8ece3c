#include "runner/artifact/foreign/torch_file.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runner/artifact/foreign/pickle.h"
#include "runner/artifact/foreign/torch_zip.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::artifact {
namespace {

using pickle::Kind;
using pickle::Machine;
using pickle::Value;

constexpr std::array<std::string_view, 4> kEndings = {".bin", ".pt", ".pth", ".ckpt"};
constexpr std::array<std::string_view, 4> kStateDictKeys = {"state_dict", "model", "model_state_dict", "module"};
constexpr std::size_t kKeysShown = 10;
constexpr std::size_t kTensorsMax = 50'000;  // one tensor under very many names is small in the pickle

// The first of the pickles before a state dict: 0x1950a86a20f9469cfc6c, in the only way Python writes it.
constexpr std::string_view kMagic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);
constexpr std::int64_t kStreamVersion = 1001;
constexpr std::int64_t kLengthBytes = 8;

/// Where the bytes of a storage are.
struct Place {
  std::int64_t begin = 0, bytes = 0;
};
using Locate = std::function<Place(const pickle::Storage& storage)>;

class Reader {
 public:
  Reader(std::string_view file, const std::string& path) : file_(file), path_(path) {}

  TorchTensors read() {
    if (file_.starts_with("PK\x03\x04")) return read_archive();
    // PROTO 2, then the number.
    if (file_.starts_with("\x80") && file_.substr(std::min<std::size_t>(2, file_.size())).starts_with(kMagic)) {
      return read_stream();
    }
    if (file_.starts_with("version https://git-lfs")) refuse("it is a pointer of Git LFS; run `git lfs pull`");
    refuse(file_.empty() ? "it is empty" : "it begins as neither of torch.save's formats does");
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw core::RunError(core::escape_for_terminal(path_ + " is not a PyTorch file: " + why));
  }

  TorchTensors read_archive() {
    const TorchZip zip(file_, path_);
    const TorchZip::Entry& entry = zip.pickle();
    const std::string folder(entry.name.substr(0, entry.name.find('/') + 1));
    if (const TorchZip::Entry* order = zip.find(folder + "byteorder"); order != nullptr && text(*order) != "little") {
      refuse("its byteorder is not \"little\"");
    }
    Machine machine(text(entry), path_ + ": " + std::string(entry.name));
    const Value root = machine.run();
    return tensors_of(machine, root, [&](const pickle::Storage& storage) {
      const std::string name = folder + "data/" + std::string(storage.key);
      const TorchZip::Entry* record = zip.find(name);
      if (record == nullptr) refuse("it lacks the storage " + name);
      return Place{record->begin, record->bytes};
    });
  }

  std::string_view text(const TorchZip::Entry& entry) const {
    return file_.substr(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.bytes));
  }

  /// The number, the version, the machine that wrote it, the state dict, the keys of its storages, the storages.
  TorchTensors read_stream() {
    std::size_t at = 2 + kMagic.size();
    const auto begin = [&](const char* part) {
      return std::pair<std::string_view, std::string>{file_.substr(at), path_ + ": its " + part};
    };
    const auto [version_text, version_where] = begin("version");
    Machine version(version_text, version_where);
    const Value number = version.run();
    if (number.kind != Kind::kInt || number.number != kStreamVersion) refuse("its version is not 1001");
    at += version.end();

    const auto [system_text, system_where] = begin("sys_info");
    Machine system(system_text, system_where);
    check_system(system, system.run());
    at += system.end();

    const auto [state_text, state_where] = begin("state dict");
    Machine state(state_text, state_where);
    const Value root = state.run();
    at += state.end();

    const auto [keys_text, keys_where] = begin("storage keys");
    Machine keys(keys_text, keys_where);
    const Value list = keys.run();
    at += keys.end();
    const auto places = read_places(state, keys, list, at);
    return tensors_of(state, root, [&](const pickle::Storage& storage) {
      const auto place = places.find(storage.key);
      if (place == places.end()) refuse("it lacks the storage " + std::string(storage.key));
      return place->second;
    });
  }

  void check_system(const Machine& machine, Value info) const {
    if (info.kind != Kind::kDict) refuse("its sys_info is not a dict");
    machine.each(info, [&](Value key, Value value) {
      if (key.kind == Kind::kText && machine.text(key) == "little_endian" && value.number != 1) {
        refuse("its sys_info says that it is not little-endian");
      }
    });
  }

  using Places = std::unordered_map<std::string_view, Place>;

  /// In the order of the keys: 8 bytes with the number of elements, then these.
  Places read_places(const Machine& state, const Machine& keys, Value list, std::size_t at) const {
    if (list.kind != Kind::kList) refuse("its storage keys are not a list");
    std::unordered_map<std::string_view, std::int64_t> item_bytes;
    for (const pickle::Storage& storage : state.storages()) item_bytes.emplace(storage.key, storage.type->bytes);
    Places places;
    keys.each(list, [&](Value, Value key) {
      if (key.kind != Kind::kText) refuse("its storage keys are not text");
      const std::string_view name = keys.text(key);
      const std::string quoted = "its storage " + std::string(name);
      const auto size = item_bytes.find(name);
      if (size == item_bytes.end()) refuse(quoted + " belongs to no tensor");
      const auto left = static_cast<std::int64_t>(file_.size() - at);
      if (left < kLengthBytes) refuse(quoted + " is beyond the end of the file");
      std::uint64_t elements = 0;
      for (std::size_t i = kLengthBytes; i-- > 0;) {
        elements = elements << 8 | static_cast<unsigned char>(file_[at + i]);
      }
      if (elements > static_cast<std::uint64_t>((left - kLengthBytes) / size->second)) {
        refuse(quoted + " has " + std::to_string(elements) + " elements of " + std::to_string(size->second) +
               " bytes, and the file ends after " + std::to_string(left - kLengthBytes));
      }
      const auto bytes = static_cast<std::int64_t>(elements) * size->second;
      const bool is_new = places.emplace(name, Place{static_cast<std::int64_t>(at) + kLengthBytes, bytes}).second;
      if (!is_new) refuse(quoted + " appears twice");
      at += static_cast<std::size_t>(kLengthBytes + bytes);
    });
    return places;
  }

  TorchTensors tensors_of(const Machine& machine, Value root, const Locate& locate) const {
    TorchTensors result;
    const Value state = find_state_dict(machine, root, result.key);
    std::unordered_set<std::string_view> names;
    machine.each(state, [&](Value key, Value value) {
      if (value.kind != Kind::kTensor) return;
      if (key.kind != Kind::kText) refuse("it has a tensor whose name is not text");
      if (!names.insert(machine.text(key)).second) refuse("it has two tensors named " + std::string(machine.text(key)));
      if (names.size() > kTensorsMax) refuse("it has more than " + std::to_string(kTensorsMax) + " tensors");
      result.tensors.push_back(place(machine.text(key), machine.tensor(value), locate));
    });
    return result;
  }

  static bool has_tensors(const Machine& machine, Value value) {
    bool any = false;
    if (value.kind == Kind::kDict)
      machine.each(value, [&](Value, Value one) { any = any || one.kind == Kind::kTensor; });
    return any;
  }

  Value find_state_dict(const Machine& machine, Value root, std::string& key_of_it) const {
    if (root.kind != Kind::kDict) refuse("it holds no dict of tensors");
    for (const std::string_view wanted : kStateDictKeys) {
      std::optional<Value> found;
      machine.each(root, [&](Value key, Value value) {
        if (key.kind == Kind::kText && machine.text(key) == wanted) found = value;
      });
      if (!found || !has_tensors(machine, *found)) continue;
      key_of_it = wanted;
      return *found;
    }
    if (has_tensors(machine, root)) return root;
    std::string keys;
    std::size_t count = 0;
    machine.each(root, [&](Value key, Value) {
      if (key.kind != Kind::kText || ++count > kKeysShown) return;
      keys += (count == 1 ? "" : ", ") + std::string(machine.text(key).substr(0, 100));
    });
    if (count > kKeysShown) keys += ", and " + std::to_string(count - kKeysShown) + " more";
    refuse(count == 0
               ? "it holds an empty dict"
               : "it has no tensors, nor has a state_dict, model, model_state_dict or module in it; it has " + keys);
  }

  TorchTensor place(std::string_view name, const pickle::Tensor& tensor, const Locate& locate) const {
    TorchTensor placed{std::string(name), tensor.type->word, tensor.shape, tensor.strides, tensor.type->bytes, 0};
    const Place storage = locate(*tensor.storage);
    const std::string quoted = "its tensor " + std::string(name);
    std::int64_t storage_bytes = 0;
    if (__builtin_mul_overflow(tensor.storage->elements, tensor.storage->type->bytes, &storage_bytes) ||
        storage_bytes > storage.bytes) {
      refuse("its storage " + std::string(tensor.storage->key) + " has " + std::to_string(storage.bytes) +
             " bytes, too few for " + std::to_string(tensor.storage->elements) + " elements");
    }
    std::int64_t elements = 1, last = tensor.offset;  // last: the element that lies farthest
    bool overflows = false;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      const std::int64_t size = tensor.shape[axis];
      std::int64_t way = 0;
      overflows = overflows || __builtin_mul_overflow(elements, size, &elements) ||
                  __builtin_mul_overflow(std::max<std::int64_t>(size - 1, 0), tensor.strides[axis], &way) ||
                  __builtin_add_overflow(last, way, &last);
    }
    std::int64_t bytes = 0;
    overflows = overflows || __builtin_mul_overflow(elements, placed.item_bytes, &bytes);
    if (overflows) refuse("the shape of " + quoted.substr(4) + " overflows");
    if (elements == 0) return placed;
    if (last >= storage_bytes / placed.item_bytes) {
      refuse(quoted + " reaches element " + std::to_string(last) + " of the storage " +
             std::string(tensor.storage->key) + ", which has " + std::to_string(storage_bytes / placed.item_bytes));
    }
    placed.begin = storage.begin + tensor.offset * placed.item_bytes;
    return placed;
  }

  std::string_view file_;
  const std::string& path_;
};

}  // namespace

bool is_torch_path(std::string_view path) {
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) { return path.ends_with(ending); });
}

TorchTensors parse_torch_file(std::string_view file, const std::string& path) { return Reader(file, path).read(); }

}  // namespace runner::artifact
