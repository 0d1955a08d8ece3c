#include "runner/gguf/reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runner/artifact/io/mapped_file.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::gguf {
namespace {

using core::Node;
using core::RunError;

constexpr std::uint32_t kVersionMin = 2, kVersionMax = 3;  // of 2 on counts have 64 bits
constexpr std::uint64_t kValuesMax = 5'000'000;  // elements of lists included: 300,000 tokens have merges, too
constexpr std::uint64_t kTensorsMax = 100'000;
constexpr std::uint64_t kTextMax = 64 << 20;
constexpr std::uint32_t kDimensionsMax = 4;
constexpr std::int64_t kElementsMax = std::int64_t{1} << 48;
constexpr std::uint32_t kSwapped = 0x03000000;  // version 3 of a file for big-endian machines

class Parser {
 public:
  Parser(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  void parse(std::vector<Tensor>& tensors, Node& values) {
    if (!bytes_.starts_with(kMagic)) {
      wrong("it is no GGUF file: it does not begin with GGUF",
            "init_from takes a folder of Transformers, a safetensors file, a checkpoint, or a GGUF file");
    }
    at_ = kMagic.size();
    const auto version = number<std::uint32_t>("the version");
    if (version == kSwapped) wrong("it was written for big-endian machines", "convert the model on this machine");
    if (version < kVersionMin || version > kVersionMax) {
      wrong("it has version " + std::to_string(version) + " of GGUF, and roux reads 2 and 3",
            "convert the model again with llama.cpp's convert_hf_to_gguf.py");
    }
    const auto tensor_count = number<std::uint64_t>("the number of tensors");
    const auto value_count = number<std::uint64_t>("the number of values");
    if (tensor_count > kTensorsMax) wrong("it says that it has " + std::to_string(tensor_count) + " tensors");
    if (value_count > kValuesMax) wrong("it says that it has " + std::to_string(value_count) + " values");
    values = Node::mapping();
    std::map<std::string, Node, std::less<>> sorted;
    for (std::uint64_t i = 0; i < value_count; ++i) {
      std::string key = text("the key of value " + std::to_string(i));
      const auto type = number<std::uint32_t>("the type of " + shown(key));
      Node read = value(static_cast<ValueType>(type), key);
      if (!sorted.emplace(key, std::move(read)).second) wrong("it has " + shown(key) + " twice");
    }
    for (auto& [key, read] : sorted) values.set(key, std::move(read));
    read_tensors(tensor_count, values, tensors);
  }

 private:
  [[noreturn]] void wrong(const std::string& what, const std::string& hint = "") const {
    throw RunError(name_ + ": " + what,
                   hint.empty() ? "the file is damaged, or was not copied whole; get it again" : hint,
                   core::kExitUsage);
  }
  static std::string shown(const std::string& text) { return core::quote(core::escape_for_terminal(text)); }

  std::uint64_t left() const { return bytes_.size() - at_; }

  template <typename T>
  T number(const std::string& what) {
    if (left() < sizeof(T)) wrong("it ends before " + what);
    T read;
    std::memcpy(&read, bytes_.data() + at_, sizeof read);
    at_ += sizeof read;
    return read;
  }

  std::string text(const std::string& what) {
    const auto size = number<std::uint64_t>(what);
    if (size > left() || size > kTextMax) wrong("it ends before " + what);
    std::string read(bytes_.substr(at_, size));
    at_ += size;
    return read;
  }

  Node value(ValueType type, const std::string& key) {
    if (++values_ > kValuesMax) wrong("it has more than " + std::to_string(kValuesMax) + " values");
    switch (type) {
      case ValueType::kU8: return Node::integer(number<std::uint8_t>(key));
      case ValueType::kI8: return Node::integer(number<std::int8_t>(key));
      case ValueType::kU16: return Node::integer(number<std::uint16_t>(key));
      case ValueType::kI16: return Node::integer(number<std::int16_t>(key));
      case ValueType::kU32: return Node::integer(number<std::uint32_t>(key));
      case ValueType::kI32: return Node::integer(number<std::int32_t>(key));
      case ValueType::kF32: return Node::floating(number<float>(key));
      case ValueType::kBool: return Node::boolean(number<std::uint8_t>(key) != 0);
      case ValueType::kString: return Node::string(text(shown(key)));
      case ValueType::kArray: return list(key);
      case ValueType::kU64: {
        const auto read = number<std::uint64_t>(key);
        if (read > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
          wrong(shown(key) + " is " + std::to_string(read));
        }
        return Node::integer(static_cast<std::int64_t>(read));
      }
      case ValueType::kI64: return Node::integer(number<std::int64_t>(key));
      case ValueType::kF64: return Node::floating(number<double>(key));
    }
    wrong(shown(key) + " has type " + std::to_string(static_cast<std::uint32_t>(type)) + ", which GGUF does not have");
  }

  Node list(const std::string& key) {
    const auto type = static_cast<ValueType>(number<std::uint32_t>(key));
    const auto count = number<std::uint64_t>(key);
    if (type == ValueType::kArray) wrong(shown(key) + " is a list of lists", "roux reads none of them");
    if (count > left()) wrong("it ends before the " + std::to_string(count) + " elements of " + shown(key));
    std::vector<Node> items;
    for (std::uint64_t i = 0; i < count; ++i) items.push_back(value(type, key));
    return Node::sequence(std::move(items));
  }

  std::int64_t alignment(const Node& values) const {
    const Node* written = values.find("general.alignment");
    if (written == nullptr) return kAlignment;
    const std::int64_t size = written->is_integer() ? written->as_integer() : 0;
    constexpr std::int64_t kMost = 1 << 20;
    if (size < 8 || size > kMost || size % 8 != 0) {
      wrong("general.alignment is " + core::escape_for_terminal(written->scalar_text()) + ", not a multiple of 8");
    }
    return size;
  }

  struct Place {
    std::uint64_t offset = 0, bytes = 0;
    std::size_t tensor = 0;
  };

  void read_tensors(std::uint64_t count, const Node& values, std::vector<Tensor>& tensors) {
    std::vector<Place> places;
    std::set<std::string> names;
    for (std::uint64_t i = 0; i < count; ++i) {
      Tensor tensor;
      tensor.name = text("the name of tensor " + std::to_string(i));
      if (!names.insert(tensor.name).second) wrong("it has the tensor " + shown(tensor.name) + " twice");
      places.push_back(place_of(tensor, i));
      tensors.push_back(std::move(tensor));
    }
    const auto align = static_cast<std::uint64_t>(alignment(values));
    const std::uint64_t start = (at_ + align - 1) / align * align;
    for (const Place& place : places) {
      const Tensor& tensor = tensors[place.tensor];
      if (place.offset % align != 0) {
        wrong("the tensor " + shown(tensor.name) + " lies at " + std::to_string(place.offset) + ", no multiple of " +
              std::to_string(align));
      }
      if (start > bytes_.size() || place.offset > bytes_.size() - start ||
          place.bytes > bytes_.size() - start - place.offset) {
        wrong("it ends before the end of the tensor " + shown(tensor.name));
      }
      tensors[place.tensor].data = bytes_.data() + start + place.offset;
    }
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.offset < b.offset; });
    for (std::size_t i = 1; i < places.size(); ++i) {
      if (places[i - 1].offset + places[i - 1].bytes <= places[i].offset) continue;
      wrong("the tensors " + shown(tensors[places[i - 1].tensor].name) + " and " +
            shown(tensors[places[i].tensor].name) + " overlap");
    }
  }

  Place place_of(Tensor& tensor, std::size_t index) {
    const std::string what = "the shape of " + shown(tensor.name);
    const auto dimensions = number<std::uint32_t>(what);
    if (dimensions < 1 || dimensions > kDimensionsMax) {
      wrong("the tensor " + shown(tensor.name) + " has " + std::to_string(dimensions) + " dimensions");
    }
    std::int64_t elements = 1;
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      const auto size = number<std::uint64_t>(what);
      if (size < 1 || size > static_cast<std::uint64_t>(kElementsMax / elements)) {
        wrong("a dimension of the tensor " + shown(tensor.name) + " is " + std::to_string(size));
      }
      elements *= static_cast<std::int64_t>(size);
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
    }
    const auto type = number<std::uint32_t>(what);
    if (!is_known(type)) {
      wrong("the tensor " + shown(tensor.name) + " is of type " + type_name(type) + ", and roux reads " +
                file_type_words(),
            "get the model in one of these, or in safetensors");
    }
    tensor.type = static_cast<TensorType>(type);
    const BlockSize block = block_size(tensor.type);
    if (tensor.columns() % block.elements != 0) {
      wrong("the rows of " + shown(tensor.name) + " have " + std::to_string(tensor.columns()) +
            " elements, no whole blocks of " + std::to_string(block.elements));
    }
    const auto offset = number<std::uint64_t>(what);
    return {offset, static_cast<std::uint64_t>(elements / block.elements * block.bytes), index};
  }

  std::string_view bytes_;
  std::string name_;
  std::size_t at_ = 0;
  std::uint64_t values_ = 0;
};

class ParsedFile final : public File {
 public:
  ParsedFile(std::string_view bytes, const std::string& name) { parse(bytes, name); }
  explicit ParsedFile(const std::string& path) : mapped_(std::in_place, path, "a GGUF file") {
    parse(mapped_->bytes(), path);
  }

  const std::vector<Tensor>& tensors() const override { return tensors_; }
  const Tensor* find(std::string_view name) const override {
    const auto at =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) { return tensor.name == name; });
    return at != tensors_.end() ? &*at : nullptr;
  }
  const Node& values() const override { return values_; }

 private:
  void parse(std::string_view bytes, const std::string& name) { Parser(bytes, name).parse(tensors_, values_); }

  std::optional<artifact::MappedFile> mapped_;
  std::vector<Tensor> tensors_;
  Node values_;
};

}  // namespace

std::int64_t Tensor::rows() const {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  return rows;
}

core::Result<std::unique_ptr<File>> open(const std::string& path) {
  return core::attempt([&]() -> std::unique_ptr<File> { return std::make_unique<ParsedFile>(path); });
}

core::Result<std::unique_ptr<File>> parse(std::string_view bytes, const std::string& name) {
  return core::attempt([&]() -> std::unique_ptr<File> { return std::make_unique<ParsedFile>(bytes, name); });
}

}  // namespace runner::gguf
