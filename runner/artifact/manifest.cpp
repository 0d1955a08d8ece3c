#include "runner/artifact/manifest.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "runner/artifact/io/checksum.h"
#include "runner/artifact/io/io.h"
#include "runner/core/error.h"
#include "runner/core/fields.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace runner::artifact {
namespace {

using core::Failure;
using core::Fields;
using core::Node;
using core::RunError;

constexpr const char* kFormat = "roux checkpoint";
constexpr std::int64_t kManifestBytesMax = 64 << 20;

std::string no_checksum() { return std::string(kChecksumPrefix) + std::string(kChecksumDigits, '0'); }

/// The text with the digits of its own checksum as zeros, and those digits.
struct Blanked {
  std::string text, checksum;
};

std::optional<Blanked> blank_checksum(std::string_view text) {
  static constexpr std::string_view kLead = "\"checksum\": \"";
  const std::size_t at = text.find(kLead);
  const std::size_t length = kChecksumPrefix.size() + kChecksumDigits;
  if (at == std::string_view::npos || text.size() < at + kLead.size() + length) return std::nullopt;
  Blanked blanked{std::string(text), std::string(text.substr(at + kLead.size(), length))};
  blanked.text.replace(at + kLead.size(), length, no_checksum());
  return blanked;
}

Node mapping_or_empty(const Node& node) { return node.is_mapping() ? node : Node::mapping(); }

std::vector<PieceSet> pieces_from(const Node& node, const std::string& path) {
  std::vector<PieceSet> sets;
  for (const Node::Entry& set : node.entries()) {
    if (!set.value.is_mapping()) throw RunError(path + ": the pieces of " + set.key + " are not a mapping");
    PieceSet& of_set = sets.emplace_back(PieceSet{set.key, {}});
    for (const Node::Entry& entry : set.value.entries()) {
      const std::string place = path + ": the pieces of " + entry.key;
      const Fields fields(entry.value, place);
      TensorPieces tensor{entry.key, {}, {}};
      const Node* shape = entry.value.find("shape");
      if (shape == nullptr || !shape->is_sequence()) throw RunError(place + " have no shape");
      for (const Node& size : shape->items()) {
        if (!size.is_integer() || size.as_integer() < 0) throw RunError(place + " have a shape that is none");
        tensor.shape.push_back(size.as_integer());
      }
      for (const Node::Entry& row : fields.mapping("first_row").entries()) {
        if (!is_plain_name(row.key) || !row.value.is_integer()) throw RunError(place + " lie in no file beside it");
        tensor.pieces.push_back({row.key, row.value.as_integer()});
      }
      of_set.tensors.push_back(std::move(tensor));
    }
  }
  return sets;
}

Node to_node(const std::vector<PieceSet>& sets) {
  Node node = Node::mapping();
  for (const PieceSet& set : sets) {
    Node tensors = Node::mapping();
    for (const TensorPieces& tensor : set.tensors) {
      Node shape = Node::sequence(), rows = Node::mapping();
      for (const std::int64_t size : tensor.shape) shape.items().push_back(Node::integer(size));
      for (const TensorPieces::Piece& piece : tensor.pieces) rows.set(piece.file, Node::integer(piece.first_row));
      Node entry = Node::mapping();
      entry.set("shape", std::move(shape));
      entry.set("first_row", std::move(rows));
      tensors.set(tensor.name, std::move(entry));
    }
    node.set(set.set, std::move(tensors));
  }
  return node;
}

Node sizes_from(const Node& node, const std::string& path) {
  const Fields fields(node, path + ": model_sizes");
  for (const Node::Entry& size : node.entries()) {
    if (fields.integer(size.key.c_str()) < 1) throw RunError(path + " has a model without a " + size.key);
  }
  return node;
}

Manifest from_node(const Node& node, const std::string& path) {
  const Fields fields(node, path);
  Manifest manifest;
  manifest.created_ms = fields.integer("created_ms");
  manifest.fields.step = fields.integer("step");
  manifest.fields.branch = fields.integer("branch");
  manifest.fields.last_metric_row = fields.integer("last_metric_row");
  manifest.fields.trained_s = fields.number("trained_s");
  manifest.fields.run_id = fields.text("run_id");
  manifest.fields.recipe_hash = fields.text("recipe_hash");
  manifest.fields.cpu_capability = fields.text("cpu_capability");
  manifest.fields.world_size = static_cast<int>(fields.integer("world_size"));
  manifest.fields.threads = static_cast<int>(fields.integer("threads"));
  if (const Node* program = node.find("program"); program != nullptr && program->is_mapping()) {
    manifest.fields.program = *program;
  }
  manifest.fields.mesh = fields.mapping("mesh");
  if (node.find("model_sizes") != nullptr)
    manifest.fields.model_sizes = sizes_from(fields.mapping("model_sizes"), path);
  manifest.fields.data_position = fields.mapping("data_position");
  manifest.fields.metrics = fields.mapping("metrics");
  for (const Node::Entry& entry : fields.mapping("files").entries()) {
    if (!is_plain_name(entry.key))
      throw RunError(path + " lists \"" + entry.key + "\", which is not a plain file name");
    const Fields file(entry.value, path + ": file " + entry.key);
    manifest.files.push_back({entry.key, file.integer("bytes"), file.text("checksum")});
  }
  if (node.find("pieces") != nullptr) manifest.pieces = pieces_from(fields.mapping("pieces"), path);
  return manifest;
}

}  // namespace

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::string manifest_text(const Manifest& manifest) {
  const ManifestFields& fields = manifest.fields;
  Node node = Node::mapping();
  node.set("format", Node::string(kFormat));
  node.set("format_version", Node::integer(manifest.format_version));
  node.set("checksum", Node::string(no_checksum()));
  node.set("step", Node::integer(fields.step));
  node.set("branch", Node::integer(fields.branch));
  node.set("last_metric_row", Node::integer(fields.last_metric_row));
  node.set("trained_s", Node::floating(fields.trained_s));
  node.set("run_id", Node::string(fields.run_id));
  node.set("recipe_hash", Node::string(fields.recipe_hash));
  node.set("created_ms", Node::integer(manifest.created_ms));
  node.set("world_size", Node::integer(fields.world_size));
  node.set("threads", Node::integer(fields.threads));
  node.set("cpu_capability", Node::string(fields.cpu_capability));
  node.set("program", mapping_or_empty(fields.program));
  node.set("mesh", mapping_or_empty(fields.mesh));
  if (const Node sizes = mapping_or_empty(fields.model_sizes); !sizes.entries().empty()) node.set("model_sizes", sizes);
  node.set("data_position", mapping_or_empty(fields.data_position));
  node.set("metrics", mapping_or_empty(fields.metrics));
  Node files = Node::mapping();
  for (const FileEntry& file : manifest.files) {
    Node entry = Node::mapping();
    entry.set("bytes", Node::integer(file.bytes));
    entry.set("checksum", Node::string(file.checksum));
    files.set(file.name, std::move(entry));
  }
  node.set("files", std::move(files));
  if (!manifest.pieces.empty()) node.set("pieces", to_node(manifest.pieces));

  std::string text = core::to_json(node) + "\n";
  const std::size_t at = text.find(no_checksum());
  text.replace(at, no_checksum().size(), checksum_of(text));
  return text;
}

core::Result<Manifest> parse_manifest(std::string_view text, const std::string& path) {
  const core::Result<Node> node = core::parse_json(text);
  if (!node) return Failure{path + " cannot be read: " + node.failure().message, ""};
  const Node* format = node.value().find("format");
  const Node* version = node.value().find("format_version");
  if (format == nullptr || !format->is_string() || format->as_string() != kFormat || version == nullptr ||
      !version->is_integer()) {
    return Failure{path + " is not a manifest of a checkpoint", ""};
  }
  // Before the checksum: a newer version may take its checksum over something else.
  if (version->as_integer() > kManifestVersion) {
    return Failure{path + " has format version " + std::to_string(version->as_integer()) +
                       ", this program reads up to " + std::to_string(kManifestVersion),
                   "read it with the version of roux that wrote it, or a newer one"};
  }
  const std::optional<Blanked> blanked = blank_checksum(text);
  if (!blanked || checksum_of(blanked->text) != blanked->checksum) {
    return Failure{path + " does not match its own checksum: it was changed or damaged", ""};
  }
  return attempt([&] {
    Manifest manifest = from_node(node.value(), path);
    manifest.format_version = static_cast<int>(version->as_integer());
    return manifest;
  });
}

core::Result<Manifest> read_manifest(const std::string& checkpoint) {
  const std::string path = (std::filesystem::path(checkpoint) / kManifestFile).string();
  core::Result<std::string> text = core::read_file(path, kManifestBytesMax);
  if (!text) return text.failure();
  return parse_manifest(text.value(), path);
}

core::Result<void> refuse_later_trainer(const core::Node& state, const std::string& path) {
  const core::Node* version = state.find("format_version");
  if (version == nullptr || !version->is_integer() || version->as_integer() <= kTrainerVersion) return {};
  return core::Failure{path + " has format version " + std::to_string(version->as_integer()) +
                           ", this program reads up to " + std::to_string(kTrainerVersion),
                       "read it with the version of roux that wrote it, or a newer one"};
}

}  // namespace runner::artifact
