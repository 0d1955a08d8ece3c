#include "runner/checkpoint/source_tensors.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "runner/artifact/io/element.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/packed/packed_weight.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;

using artifact::TensorBytes;
using pretrained::ModelType;
using pretrained::WeightRule;

constexpr std::int64_t kConfigBytesMax = 2 << 20;

/// By its name, or by the one that a file saved without the head, or an older one, has.
const TensorBytes* find(const BareNames& source, const ModelType& type, const std::string& name) {
  const auto find_either = [&](const std::string& whole) {
    if (const TensorBytes* bytes = source.find(whole)) return bytes;
    return source.find(whole.starts_with(type.prefix) ? whole.substr(type.prefix.size()) : type.prefix + whole);
  };
  if (const TensorBytes* bytes = find_either(name)) return bytes;
  for (const auto& [now, before] : type.old_ends) {
    if (name.ends_with(now)) return find_either(name.substr(0, name.size() - now.size()) + before);
  }
  return nullptr;
}

std::vector<std::int64_t> joined_shape(const std::vector<const TensorBytes*>& parts, bool transposed) {
  std::vector<std::int64_t> shape = parts.front()->shape;
  if (transposed) {
    if (shape.size() != 2) return {};
    std::swap(shape[0], shape[1]);
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::vector<std::int64_t>& other = parts[i]->shape;
    const bool fits =
        !shape.empty() && other.size() == shape.size() && std::equal(shape.begin() + 1, shape.end(), other.begin() + 1);
    if (!fits) return {};
    shape[0] += other[0];
  }
  return shape;
}

/// Of a stack of experts, the number of them: matrices joined one behind the other have the shape of the stack.
std::vector<std::int64_t> stacked_shape(std::vector<std::int64_t> joined, std::int64_t experts) {
  if (joined.size() != 2 || joined[0] % experts != 0) return {};
  return {experts, joined[0] / experts, joined[1]};
}

/// Experts of a block in the source, of which at least one matrix is there.
std::int64_t experts_of(const BareNames& source, const ModelType& type, const WeightRule& rule, std::int64_t number) {
  const std::size_t matrices = rule.from.size();
  std::int64_t experts = 0;
  for (bool found = true; found; experts += found ? 1 : 0) {
    const std::vector<std::string> names = rule.parts(number, experts + 1);
    found = std::any_of(names.end() - static_cast<std::ptrdiff_t>(matrices), names.end(),
                        [&](const std::string& name) { return find(source, type, name) != nullptr; });
  }
  return experts;
}

bool is_ignored(const ModelType& type, const std::string& name) {
  return std::any_of(type.ignored.begin(), type.ignored.end(), [&](const std::string& pattern) {
    return pretrained::number_in(pattern, name) || pretrained::number_in(pattern, type.prefix + name);
  });
}

/// `model_type` of a configuration; "" when it cannot be read.
std::string named_type(const std::string& config) {
  const core::Result<std::string> text = core::read_file(config, kConfigBytesMax);
  if (!text) return "";
  const core::Result<core::Node> read = core::parse_json(text.value());
  const core::Node* name = read && read.value().is_mapping() ? read.value().find("model_type") : nullptr;
  return name != nullptr && name->is_string() ? name->as_string() : "";
}

}  // namespace

std::string SourceTensor::told() const {
  std::string text;
  for (const std::string& part : from) text += (text.empty() ? "" : " + ") + part;
  return text;
}

SourceTensors renamed_tensors(const BareNames& source, const core::NameMap& map) {
  SourceTensors found;
  for (const auto& [name, bytes] : source.tensors()) {
    found.tensors.push_back({map(name), {bytes->name}, false, bytes->dtype, bytes->shape});
  }
  return found;
}

SourceTensors pretrained_tensors(const BareNames& source, const ModelType& type,
                                 const std::vector<std::string>& names) {
  SourceTensors found;
  std::set<std::string> used;
  for (const std::string& name : names) {
    for (const WeightRule& rule : type.weights) {
      const std::optional<std::int64_t> number = pretrained::number_in(rule.name, name);
      if (!number) continue;
      SourceTensor tensor{name, {}, rule.transposed};
      std::vector<const TensorBytes*> parts;
      std::vector<std::string> absent;
      const std::int64_t experts = rule.is_of_experts() ? experts_of(source, type, rule, *number) : 0;
      const bool is_stack = rule.is_of_experts() && experts == 0;
      const std::vector<std::string> names_there =
          is_stack ? std::vector{pretrained::with_number(rule.stacked, *number)} : rule.parts(*number, experts);
      for (const std::string& wanted : names_there) {
        if (const TensorBytes* bytes = find(source, type, wanted)) {
          parts.push_back(bytes);
          tensor.from.push_back(bytes->name);
          used.insert(bytes->name);
        } else {
          absent.push_back(wanted);
        }
      }
      if (parts.empty()) continue;
      if (!absent.empty()) {
        found.lacking.emplace(name, std::move(absent));
        continue;
      }
      // The one that does not fit, if there is one.
      const auto odd = std::find_if(parts.begin(), parts.end(),
                                    [](const TensorBytes* part) { return !artifact::is_floating(part->dtype); });
      tensor.dtype = (odd != parts.end() ? *odd : parts.front())->dtype;
      // Transformers turns weights before it packs them.
      if (pretrained::is_packed(tensor.dtype)) tensor.transposed = false;
      tensor.shape = joined_shape(parts, tensor.transposed);
      if (experts > 0) tensor.shape = stacked_shape(tensor.shape, experts);
      found.tensors.push_back(std::move(tensor));
    }
  }
  for (const auto& [name, bytes] : source.tensors()) {
    if (!used.contains(bytes->name) && !is_ignored(type, name)) found.unused.push_back(bytes->name);
  }
  return found;
}

const ModelType* pretrained_type_of(const std::string& path, const BareNames& source, const ModelType* of_model) {
  const std::string folder = fs::path(path).parent_path().string();
  const std::string config = pretrained::config_of_folder(folder.empty() ? "." : folder);
  const std::string named = config.empty() ? "" : named_type(config);
  const bool is_of_model = config.empty() || (of_model != nullptr && of_model->name == named);
  const ModelType* type = is_of_model ? of_model : pretrained::find_model_type(named);
  if (type == nullptr) return nullptr;
  // A name that roux has, too, tells nothing.
  const auto tells = [&](const WeightRule& rule, const std::string& pattern, const std::string& name) {
    const std::optional<std::int64_t> number = pretrained::number_in(pattern, name);
    return number && name != pretrained::with_number(rule.name, *number);
  };
  for (const WeightRule& rule : type->weights) {
    for (const std::string& pattern : rule.from) {
      const bool is_based = pattern.starts_with(type->prefix);
      const std::string other = is_based ? pattern.substr(type->prefix.size()) : type->prefix + pattern;
      for (const BareNames::Tensor& tensor : source.tensors()) {
        if (tells(rule, pattern, tensor.name) || tells(rule, other, tensor.name)) return type;
      }
    }
  }
  return nullptr;
}

}  // namespace runner::checkpoint
