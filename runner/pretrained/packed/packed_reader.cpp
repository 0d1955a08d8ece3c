#include "runner/pretrained/packed/packed_reader.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "components/quantization/blockwise.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::pretrained {
namespace {

namespace quantization = components::quantization;
namespace kernels = components::kernels;

using artifact::TensorBytes;
using core::Node;
using Kind = PackedWeight::Kind;

constexpr std::string_view kWeight = ".weight", kScb = ".SCB", kFormat = ".weight_format",
                           kState = ".quant_state.bitsandbytes__";
constexpr std::array<std::string_view, 4> kBeside = {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"};
constexpr std::int64_t kStateBytesMax = 1 << 16;
constexpr core::JsonLimits kStateLimits{4, 100};
constexpr std::int64_t kSizeMax = std::int64_t{1} << 31;
constexpr float kNearCode = 1e-6F;  ///< that bitsandbytes takes for the same

/// One weight: checks what a file has of it.
class Weight {
 public:
  Weight(const artifact::SafetensorsReader& file, const std::string& path, std::string name)
      : file_(file), path_(path), name_(std::move(name)) {}

  /// `state`: the tensor of its quant_state; "": there is none.
  PackedWeight four_bits(const std::string& state) {
    if (state.empty()) refuse("lacks " + name_ + std::string(kState) + "nf4, which says how it is packed");
    const std::string word = state.substr(name_.size() + kState.size());
    if (word != "nf4" && word != "fp4") refuse("is kept as " + word + ", which roux does not read", kAnother);
    found_.kind = word == "nf4" ? Kind::kNf4 : Kind::kFp4;
    found_.codes = needed(name_);
    const Node fields = state_of(take(state));
    check_sizes(fields, word);
    const std::int64_t count = found_.out * found_.in;
    if (found_.codes.bytes != quantization::packed_bytes(count)) {
      refuse("is " + artifact::shape_text({found_.out, found_.in}) + ", which is " +
             std::to_string(quantization::packed_bytes(count)) + " bytes in 4 bits, and has " +
             std::to_string(found_.codes.bytes));
    }
    const std::int64_t blocks = quantization::blocks_of(count, quantization::kBlockOfFourBits);
    found_.scales = take(name_ + ".absmax");
    check_map(name_ + ".quant_map", quantization::table_of(found_.kind).values);
    if (file_.find(name_ + ".nested_absmax") != nullptr || file_.find(name_ + ".nested_quant_map") != nullptr) {
      check_type(found_.scales, "U8", blocks);
      found_.nested_scales = take(name_ + ".nested_absmax");
      check_type(found_.nested_scales, "F32", quantization::blocks_of(blocks, quantization::kNestedBlock));
      check_map(name_ + ".nested_quant_map", kernels::kSignedCodes.values);
      check_nested(fields);
    } else {
      check_type(found_.scales, "F32", blocks);
    }
    return std::move(found_);
  }

  PackedWeight eight_bits() {
    found_.kind = Kind::kInt8;
    found_.codes = needed(name_);
    const std::vector<std::int64_t>& shape = found_.codes.shape;
    if (found_.codes.dtype != "I8" || shape.size() != 2 || shape[0] < 1 || shape[1] < 1) {
      refuse("is " + found_.codes.dtype + " " + artifact::shape_text(shape) +
             ", and a weight in 8 bits is I8 with outputs and inputs");
    }
    found_.out = shape[0];
    found_.in = shape[1];
    const std::string stem = name_.substr(0, name_.size() - kWeight.size());
    found_.scales = take(stem + std::string(kScb));
    check_type(found_.scales, "F32", found_.out);
    const std::string format = stem + std::string(kFormat);
    if (file_.find(format) != nullptr) {
      const TensorBytes& tensor = take(format);
      check_type(tensor, "U8", 1);
      std::vector<char> scratch;
      const auto number = static_cast<std::uint8_t>(*artifact::bytes_at(tensor, 0, 1, scratch));
      if (number != 0) {
        refuse("has its rows in an order of a GPU (weight_format " + std::to_string(number) +
                   "), which bitsandbytes no longer writes",
               kAnother);
      }
    }
    return std::move(found_);
  }

 private:
  static constexpr const char* kAnother =
      "load the folder in Transformers with bitsandbytes 0.50, and save it again; or name the folder that it was made "
      "of, with quantization";

  [[noreturn]] void refuse(const std::string& why, const std::string& hint = "copy or make the folder again") const {
    throw core::RunError(core::escape_for_terminal(path_ + ": " + name_ + " " + why), hint, core::kExitUsage);
  }

  const TensorBytes& needed(const std::string& name) const {
    const TensorBytes* tensor = file_.find(name);
    if (tensor == nullptr) refuse("is quantized, and " + name + " is missing");
    return *tensor;
  }

  const TensorBytes& take(const std::string& name) {
    const TensorBytes& tensor = needed(name);
    found_.beside.push_back(tensor);
    return tensor;
  }

  void check_type(const TensorBytes& tensor, const char* dtype, std::int64_t count) const {
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= size;
    if (tensor.dtype == dtype && elements == count) return;
    refuse("is quantized, and " + tensor.name + " is " + tensor.dtype + " " + artifact::shape_text(tensor.shape) +
           ", not " + dtype + " " + artifact::shape_text({count}));
  }

  Node state_of(const TensorBytes& tensor) const {
    if (tensor.dtype != "U8" || tensor.bytes > kStateBytesMax) {
      refuse("is quantized, and " + tensor.name + " is " + tensor.dtype + " " + artifact::shape_text(tensor.shape) +
             ", not the bytes of a short text");
    }
    std::vector<char> scratch;
    const char* const text = artifact::bytes_at(tensor, 0, tensor.bytes, scratch);
    const auto json = core::parse_json({text, static_cast<std::size_t>(tensor.bytes)}, kStateLimits);
    if (!json) refuse("is quantized, and " + tensor.name + " is not JSON: " + json.failure().message);
    if (!json.value().is_mapping()) refuse("is quantized, and " + tensor.name + " is not an object of JSON");
    return json.value();
  }

  void check_sizes(const Node& fields, const std::string& word) {
    const Node *type = fields.find("quant_type"), *block = fields.find("blocksize"), *shape = fields.find("shape");
    if (type == nullptr || !type->is_string() || type->as_string() != word) {
      refuse("is kept as " + word + ", and the quant_type of its quant_state is " + shown(type));
    }
    if (block == nullptr || !block->is_integer() || block->as_integer() != quantization::kBlockOfFourBits) {
      refuse("has blocks of " + shown(block) + " numbers, and roux reads those of " +
                 std::to_string(quantization::kBlockOfFourBits),
             kAnother);
    }
    const auto size = [&](std::size_t i) -> std::int64_t {
      const Node& one = shape->items()[i];
      return one.is_integer() && one.as_integer() > 0 && one.as_integer() < kSizeMax ? one.as_integer() : 0;
    };
    if (shape == nullptr || !shape->is_sequence() || shape->items().size() != 2 || size(0) == 0 || size(1) == 0) {
      refuse("has the shape " + shown(shape) + " in its quant_state, not a number of outputs and one of inputs");
    }
    found_.out = size(0);
    found_.in = size(1);
    if (found_.in % 2 != 0) {
      refuse("has rows of " + std::to_string(found_.in) + " numbers, and roux reads two at a time", kAnother);
    }
  }

  void check_nested(const Node& fields) {
    const Node *block = fields.find("nested_blocksize"), *offset = fields.find("nested_offset");
    if (block == nullptr || !block->is_integer() || block->as_integer() != quantization::kNestedBlock) {
      refuse("has blocks of " + shown(block) + " scales, and roux reads those of " +
                 std::to_string(quantization::kNestedBlock),
             kAnother);
    }
    found_.nested_offset =
        offset != nullptr && offset->is_number() ? static_cast<float>(offset->as_double()) : std::nanf("");
    if (!std::isfinite(found_.nested_offset)) {
      refuse("has quantized scales, and the nested_offset of its quant_state is " + shown(offset));
    }
  }

  /// The values of codes, which have to be the usual ones.
  void check_map(const std::string& name, std::span<const float> usual) {
    const TensorBytes& tensor = take(name);
    check_type(tensor, "F32", static_cast<std::int64_t>(usual.size()));
    std::vector<char> scratch;
    const char* const from = artifact::bytes_at(tensor, 0, tensor.bytes, scratch);
    for (std::size_t i = 0; i < usual.size(); ++i) {
      float value;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      if (std::fabs(value - usual[i]) <= kNearCode) continue;
      refuse("is kept with values of its own (" + name + "), which roux does not read", kAnother);
    }
  }

  static std::string shown(const Node* value) { return value != nullptr ? core::to_json(*value, -1) : "missing"; }

  const artifact::SafetensorsReader& file_;
  const std::string& path_;
  const std::string name_;
  PackedWeight found_;
};

/// What a file has beside weights, by their names: of 4 bits the tensors with their quant_state, of 8 bits nothing.
struct Groups {
  std::map<std::string, std::string> four_bits;
  std::set<std::string> eight_bits;
};

std::optional<std::string> before(const std::string& name, std::string_view end) {
  if (!name.ends_with(end)) return std::nullopt;
  return name.substr(0, name.size() - end.size());
}

Groups groups_of(const artifact::SafetensorsReader& file) {
  Groups groups;
  for (const TensorBytes& tensor : file.tensors()) {
    const std::string& name = tensor.name;
    for (const std::string_view end : kBeside) {
      const auto weight = before(name, end);
      if (weight && weight->ends_with(kWeight)) groups.four_bits.emplace(*weight, "");
    }
    if (const std::size_t at = name.rfind(kState); at != std::string::npos) groups.four_bits[name.substr(0, at)] = name;
    for (const std::string_view end : {kScb, kFormat}) {
      if (const auto stem = before(name, end)) groups.eight_bits.insert(*stem + std::string(kWeight));
    }
  }
  return groups;
}

/// As one tensor of the file.
TensorBytes joined(const std::string& name, const PackedWeight& weight) {
  TensorBytes whole{name, packed_word(weight.kind), {weight.out, weight.in}, nullptr, 0, {}};
  const auto add = [&whole](const TensorBytes& tensor) {
    for (const artifact::BytesPiece& piece : artifact::pieces_of(tensor)) {
      whole.pieces.push_back(piece);
      whole.bytes += piece.bytes;
    }
  };
  add(weight.codes);
  for (const TensorBytes& tensor : weight.beside) add(tensor);
  return whole;
}

}  // namespace

PackedReader::PackedReader(std::unique_ptr<artifact::SafetensorsReader> file, const std::string& path)
    : file_(std::move(file)) {
  const Groups groups = groups_of(*file_);
  for (const auto& [name, state] : groups.four_bits) packed_.emplace(name, Weight(*file_, path, name).four_bits(state));
  for (const std::string& name : groups.eight_bits) packed_.emplace(name, Weight(*file_, path, name).eight_bits());
  std::set<std::string> beside;
  for (const auto& [name, weight] : packed_) {
    for (const TensorBytes& tensor : weight.beside) beside.insert(tensor.name);
  }
  for (const TensorBytes& tensor : file_->tensors()) {
    const auto at = packed_.find(tensor.name);
    if (at != packed_.end()) {
      add(joined(tensor.name, at->second));
    } else if (!beside.contains(tensor.name)) {
      add(tensor);
    }
  }
  metadata_ = file_->metadata();
}

core::Result<std::unique_ptr<PackedReader>> PackedReader::open(const std::string& path,
                                                               const artifact::OpenTensors& open) {
  return artifact::attempt(
      [&] { return std::make_unique<PackedReader>(artifact::open_tensors(path, open).value(), path); });
}

const PackedWeight* PackedReader::packed(const std::string& name) const {
  const auto at = packed_.find(name);
  return at != packed_.end() ? &at->second : nullptr;
}

}  // namespace runner::pretrained
