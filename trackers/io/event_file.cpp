#include "trackers/io/event_file.h"

#include <bit>
#include <cmath>
#include <optional>
#include <string_view>

#include "runner/core/platform/files.h"
#include "trackers/io/crc32c.h"
#include "trackers/io/wire_reader.h"

// The messages Event, Summary, TensorProto, SessionLog (tensorflow/core) and HParamsPluginData (tensorboard/plugins).

namespace trackers {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr std::int64_t kFileBytesMax = std::int64_t{4} << 30;
constexpr std::size_t kHeadBytes = 12, kFootBytes = 4;
constexpr int kFloat = 1, kDouble = 2, kString = 7;  // types of a tensor
constexpr std::uint64_t kSessionStart = 1;

template <typename Number>
Number little_endian(std::string_view bytes) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

/// The next record of the file, taken off `rest`; nothing, and why, where it is damaged.
std::optional<std::string_view> next_record(std::string_view& rest, std::string& damage) {
  damage = "its last record is truncated";
  if (rest.size() < kHeadBytes) return std::nullopt;
  const auto length = little_endian<std::uint64_t>(rest);
  const bool sound = masked_crc32c(rest.substr(0, 8)) == little_endian<std::uint32_t>(rest.substr(8));
  if (!sound) {
    damage = "a checksum does not match";
    return std::nullopt;
  }
  if (length > rest.size() - kHeadBytes || rest.size() - kHeadBytes - length < kFootBytes) return std::nullopt;
  const std::string_view record = rest.substr(kHeadBytes, length);
  if (masked_crc32c(record) != little_endian<std::uint32_t>(rest.substr(kHeadBytes + length))) {
    damage = "a checksum does not match";
    return std::nullopt;
  }
  rest.remove_prefix(kHeadBytes + length + kFootBytes);
  damage.clear();
  return record;
}

/// A tensor of one number, or of one text.
struct Tensor {
  std::int64_t type = 0;
  std::optional<double> number;
  std::optional<std::string> text;
};

Tensor read_tensor(std::string_view bytes) {
  Tensor tensor;
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    const bool packed = field->is_bytes;
    switch (field->number) {
      case 1: tensor.type = field->integer(); break;
      case 4:  // tensor_content
        if (tensor.type == kFloat && field->bytes.size() == 4) {
          tensor.number = std::bit_cast<float>(little_endian<std::uint32_t>(field->bytes));
        } else if (tensor.type == kDouble && field->bytes.size() == 8) {
          tensor.number = std::bit_cast<double>(little_endian<std::uint64_t>(field->bytes));
        }
        break;
      case 5:
        if (!packed) tensor.number = field->real32();
        if (packed && field->bytes.size() == 4) {
          tensor.number = std::bit_cast<float>(little_endian<std::uint32_t>(field->bytes));
        }
        break;
      case 6:
        if (!packed) tensor.number = field->real();
        if (packed && field->bytes.size() == 8) {
          tensor.number = std::bit_cast<double>(little_endian<std::uint64_t>(field->bytes));
        }
        break;
      case 8:
        if (!tensor.text) tensor.text = std::string(field->bytes);
        break;
      default: break;
    }
  }
  return tensor;
}

/// google.protobuf.Value, as far as a hyperparameter can be one.
Node read_value(std::string_view bytes) {
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 2: {
        const double number = field->real();
        const bool whole = number == std::floor(number) && std::fabs(number) < 1e15;
        return whole ? Node::integer(static_cast<std::int64_t>(number)) : Node::floating(number);
      }
      case 3: return Node::string(std::string(field->bytes));
      case 4: return Node::boolean(field->bits != 0);
      default: break;
    }
  }
  return Node::null();
}

/// HParamsPluginData: 3 is the start of a session, its 1 a map from names to values.
void read_hparams(std::string_view content, Node& hparams) {
  WireReader data(content);
  while (const auto session = data.next()) {
    if (session->number != 3 || !session->is_bytes) continue;
    WireReader info(session->bytes);
    while (const auto entry = info.next()) {
      if (entry->number != 1 || !entry->is_bytes) continue;
      std::string name;
      Node value;
      WireReader pair(entry->bytes);
      while (const auto part = pair.next()) {
        if (part->number == 1) name = std::string(part->bytes);
        if (part->number == 2) value = read_value(part->bytes);
      }
      hparams.set(name, std::move(value));
    }
  }
}

struct Stamp {
  std::int64_t step = 0, time_ms = 0;
};

void read_summary_value(std::string_view bytes, const Stamp& stamp, EventFile& all) {
  std::string tag, plugin;
  std::string_view content;
  std::optional<double> number;
  std::optional<Tensor> tensor;
  bool other = false;
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 1: tag = std::string(field->bytes); break;
      case 2: number = field->real32(); break;
      case 8: tensor = read_tensor(field->bytes); break;
      case 9: {  // metadata: its 1 is the plugin's data: name and content
        WireReader metadata(field->bytes);
        while (const auto part = metadata.next()) {
          if (part->number != 1 || !part->is_bytes) continue;
          WireReader data(part->bytes);
          while (const auto piece = data.next()) {
            if (piece->number == 1) plugin = std::string(piece->bytes);
            if (piece->number == 2) content = piece->bytes;
          }
        }
        break;
      }
      case 4:
      case 5:
      case 6: other = true; break;  // image, histogram, audio
      default: break;
    }
  }
  if (plugin == "hparams") return read_hparams(content, all.hparams);
  if (!number && tensor && tensor->number) number = tensor->number;
  if (number) {
    all.scalars.push_back({tag, stamp.step, stamp.time_ms, *number});
  } else if (tensor && tensor->type == kString && tensor->text && plugin == "text") {
    all.texts.push_back({tag, stamp.step, stamp.time_ms, *tensor->text});
  } else if (other || tensor) {
    ++all.left_out;
  }
}

void read_event(std::string_view bytes, EventFile& all) {
  Stamp stamp;
  std::string_view summary, session;
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 1: stamp.time_ms = std::llround(field->real() * 1000); break;
      case 2: stamp.step = field->integer(); break;
      case 5: summary = field->bytes; break;
      case 7: session = field->bytes; break;
      default: break;
    }
  }
  WireReader log(session);
  while (const auto field = log.next()) {
    if (field->number != 1 || field->bits != kSessionStart || stamp.step <= 0) continue;
    std::erase_if(all.scalars, [&](const auto& scalar) { return scalar.step >= stamp.step; });
    std::erase_if(all.texts, [&](const auto& text) { return text.step >= stamp.step; });
  }
  WireReader values(summary);
  while (const auto value = values.next()) {
    if (value->number == 1 && value->is_bytes) read_summary_value(value->bytes, stamp, all);
  }
}

}  // namespace

Result<void> read_event_file(const std::string& path, EventFile& all) {
  const auto bytes = runner::core::read_file(path, kFileBytesMax);
  if (!bytes) return bytes.failure();
  std::string_view rest = bytes.value();
  for (bool first = true; !rest.empty(); first = false) {
    std::string damage;
    const auto record = next_record(rest, damage);
    if (record) {
      read_event(*record, all);
      continue;
    }
    if (first) return Failure{path + " is not an event file of TensorBoard: " + damage};
    all.damage = path + ": " + damage + "; the part before it was read";
    break;
  }
  return {};
}

}  // namespace trackers
