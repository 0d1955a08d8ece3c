#include "runner/artifact/tensor_compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "runner/artifact/io/element.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

using core::Node;
using core::RunError;
using Kind = TensorDifference::Kind;

constexpr std::int64_t kOtherBytesMax = 1 << 30;
constexpr std::int64_t kElementsAtOnce = 4096;

// Fields of trainer.json that measure time.
constexpr std::array<std::string_view, 1> kWallClock = {"counters.progress.seconds"};

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::vector<std::int64_t> index_of(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; flat /= shape[axis]) index[axis] = flat % shape[axis];
  return index;
}

void count_pair(double a, double b, std::int64_t at, const std::vector<std::int64_t>& shape,
                TensorDifference& difference) {
  if (difference.differing++ == 0) {
    difference.first = index_of(at, shape);
    difference.first_a = a;
    difference.first_b = b;
  }
  const double distance = std::abs(a - b);
  if (!std::isfinite(distance)) {
    ++difference.without_distance;
    return;
  }
  difference.max_abs = std::max(difference.max_abs, distance);
  const double size = std::max(std::abs(a), std::abs(b));
  if (size > 0) difference.max_rel = std::max(difference.max_rel, distance / size);
}

/// Equal ranges are skipped at memory speed; a tensor that differs everywhere still takes a few ns per element.
template <typename Element>
void compare_bits(const TensorBytes& a, const TensorBytes& b, TensorDifference& difference) {
  constexpr std::int64_t kSize = sizeof(typename Element::Bits);
  std::vector<char> scratch_a, scratch_b;
  for (std::int64_t begin = 0; begin < difference.elements; begin += kElementsAtOnce) {
    const std::int64_t count = std::min(kElementsAtOnce, difference.elements - begin);
    const char* const from_a = bytes_at(a, begin * kSize, count * kSize, scratch_a);
    const char* const from_b = bytes_at(b, begin * kSize, count * kSize, scratch_b);
    if (std::memcmp(from_a, from_b, static_cast<std::size_t>(count * kSize)) == 0) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::memcmp(from_a + i * kSize, from_b + i * kSize, kSize) == 0) continue;
      count_pair(static_cast<double>(Element::value(bits_at<Element>(from_a, i))),
                 static_cast<double>(Element::value(bits_at<Element>(from_b, i))), begin + i, a.shape, difference);
    }
  }
}

template <typename A, typename B>
void compare_numbers(const TensorBytes& a, const TensorBytes& b, TensorDifference& difference) {
  constexpr std::int64_t kSizeA = sizeof(typename A::Bits), kSizeB = sizeof(typename B::Bits);
  std::vector<char> scratch_a, scratch_b;
  for (std::int64_t begin = 0; begin < difference.elements; begin += kElementsAtOnce) {
    const std::int64_t count = std::min(kElementsAtOnce, difference.elements - begin);
    const char* const from_a = bytes_at(a, begin * kSizeA, count * kSizeA, scratch_a);
    const char* const from_b = bytes_at(b, begin * kSizeB, count * kSizeB, scratch_b);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto x = static_cast<double>(A::value(bits_at<A>(from_a, i)));
      const auto y = static_cast<double>(B::value(bits_at<B>(from_b, i)));
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      count_pair(x, y, begin + i, a.shape, difference);
    }
  }
}

std::optional<TensorDifference> compare_tensors(const std::string& set, const TensorBytes& a, const TensorBytes& b) {
  TensorDifference difference;
  difference.set = set;
  difference.name = a.name;
  difference.dtype_a = a.dtype;
  difference.dtype_b = b.dtype;
  difference.shape_a = a.shape;
  difference.shape_b = b.shape;
  if (a.shape != b.shape) {
    difference.kind = Kind::kShape;
    return difference;
  }
  difference.elements = element_count(a.shape);
  if (a.dtype == b.dtype) {
    visit_element(a.dtype, [&](auto element) { compare_bits<decltype(element)>(a, b, difference); });
    if (difference.differing == 0) return std::nullopt;
    return difference;
  }
  difference.kind = Kind::kDtype;
  visit_element(a.dtype, [&](auto x) {
    visit_element(b.dtype, [&](auto y) { compare_numbers<decltype(x), decltype(y)>(a, b, difference); });
  });
  return difference;
}

TensorDifference only_in(Kind kind, const std::string& set, const TensorBytes& tensor) {
  TensorDifference difference;
  difference.kind = kind;
  difference.set = set;
  difference.name = tensor.name;
  (kind == Kind::kOnlyInA ? difference.dtype_a : difference.dtype_b) = tensor.dtype;
  (kind == Kind::kOnlyInA ? difference.shape_a : difference.shape_b) = tensor.shape;
  return difference;
}

/// Either path may be "": that side has no such set.
void compare_sets(const std::string& set, const std::string& path_a, const std::string& path_b, Comparison& result) {
  std::unique_ptr<SafetensorsReader> a, b;
  if (!path_a.empty()) a = open_tensors(path_a).value();
  if (!path_b.empty()) b = open_tensors(path_b).value();
  std::set<std::string> names;
  for (const auto* reader : {a.get(), b.get()}) {
    if (reader == nullptr) continue;
    for (const TensorBytes& tensor : reader->tensors()) names.insert(tensor.name);
  }
  for (const std::string& name : names) {
    const TensorBytes* in_a = a != nullptr ? a->find(name) : nullptr;
    const TensorBytes* in_b = b != nullptr ? b->find(name) : nullptr;
    if (in_a == nullptr || in_b == nullptr) {
      result.tensors.push_back(in_a != nullptr ? only_in(Kind::kOnlyInA, set, *in_a)
                                               : only_in(Kind::kOnlyInB, set, *in_b));
      continue;
    }
    ++result.tensors_compared;
    result.elements_compared += element_count(in_a->shape);
    if (auto difference = compare_tensors(set, *in_a, *in_b)) result.tensors.push_back(std::move(*difference));
  }
}

void compare_nodes(const std::string& file, const std::string& path, const Node* a, const Node* b, Comparison& result) {
  if (a != nullptr && b != nullptr && a->kind() == b->kind()) {
    if (a->is_mapping()) {
      const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
      for (const auto& entry : a->entries()) {
        compare_nodes(file, below(entry.key), &entry.value, b->find(entry.key), result);
      }
      for (const auto& entry : b->entries()) {
        if (a->find(entry.key) == nullptr) compare_nodes(file, below(entry.key), nullptr, &entry.value, result);
      }
      return;
    }
    if (a->is_sequence() && a->items().size() == b->items().size()) {
      for (std::size_t i = 0; i < a->items().size(); ++i) {
        compare_nodes(file, path + "[" + std::to_string(i) + "]", &a->items()[i], &b->items()[i], result);
      }
      return;
    }
    if (core::to_json(*a, -1) == core::to_json(*b, -1)) return;
  }
  const auto text = [](const Node* node) { return node != nullptr ? core::to_json(*node, -1) : ""; };
  const bool wall_clock = std::find(kWallClock.begin(), kWallClock.end(), path) != kWallClock.end();
  result.values.push_back({file, path, text(a), text(b), wall_clock});
}

Node read_json(const std::string& path) {
  const std::string text = core::read_file(path, kOtherBytesMax).value();
  core::Result<Node> node = core::parse_json(text);
  if (!node) throw RunError(path + " cannot be read: " + node.failure().message);
  return std::move(node).value();
}

/// Everything but tensors and the manifest; `pinned` concerns the folder and is not part of the state.
std::set<std::string> other_files(const std::string& folder) {
  std::set<std::string> names;
  const std::vector<std::string> names_there = core::list_folder(folder).value();
  for (const std::string& name : names_there) {
    if (name == kManifestFile || name == kPinnedFile || name.ends_with(kSafetensorsEnding) ||
        name.ends_with(kIndexEnding)) {
      continue;
    }
    names.insert(name);
  }
  return names;
}

void compare_others(const std::string& a, const std::string& b, Comparison& result) {
  std::set<std::string> names = other_files(a);
  names.merge(other_files(b));
  for (const std::string& name : names) {
    const std::string in_a = (fs::path(a) / name).string();
    const std::string in_b = (fs::path(b) / name).string();
    std::error_code error;
    const bool has_a = fs::exists(in_a, error), has_b = fs::exists(in_b, error);
    if (!has_a || !has_b) {
      result.values.push_back({name, "", has_a ? "present" : "", has_b ? "present" : "", false});
    } else if (name == kTrainerFile) {
      const Node root_a = read_json(in_a), root_b = read_json(in_b);
      compare_nodes(name, "", &root_a, &root_b, result);
    } else {
      const std::string bytes_a = core::read_file(in_a, kOtherBytesMax).value();
      const std::string bytes_b = core::read_file(in_b, kOtherBytesMax).value();
      const auto size = [](const std::string& bytes) { return std::to_string(bytes.size()) + " bytes"; };
      if (bytes_a != bytes_b) result.values.push_back({name, "", size(bytes_a), size(bytes_b), false});
    }
  }
}

void compare_folders(const std::string& a, const std::string& b, Comparison& result) {
  std::set<std::string> names;
  for (const std::string& folder : {a, b}) {
    for (std::string& name : tensor_sets(folder)) names.insert(std::move(name));
  }
  // The parameters first: their differences matter most.
  std::vector<std::string> order;
  for (const char* first : {kModelFile, "optimizer.safetensors"}) {
    if (names.erase(first) > 0) order.emplace_back(first);
  }
  order.insert(order.end(), names.begin(), names.end());
  for (const std::string& name : order) {
    compare_sets(name, tensor_set_path(a, name), tensor_set_path(b, name), result);
  }
  compare_others(a, b, result);
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

void refuse_empty(const std::string& folder) {
  if (tensor_sets(folder).empty()) {
    throw RunError("there is no checkpoint in " + folder + ": it has no safetensors file",
                   "`roux checkpoints list RUN` shows the checkpoints of a run");
  }
}

std::string tensors_of(const std::string& path) {
  if (!is_folder(path)) return path;
  const std::string model = tensor_set_path(path, kModelFile);
  if (model.empty()) throw RunError(path + " holds no " + kModelFile);
  return model;
}

}  // namespace

bool Comparison::same() const {
  return tensors.empty() &&
         std::all_of(values.begin(), values.end(), [](const ValueDifference& value) { return value.wall_clock; });
}

core::Result<Comparison> compare_checkpoints(const std::string& a, const std::string& b) {
  return attempt([&] {
    Comparison result;
    if (is_folder(a) && is_folder(b)) {
      refuse_empty(a);
      refuse_empty(b);
      compare_folders(a, b, result);
    } else {
      compare_sets("", tensors_of(a), tensors_of(b), result);
    }
    return result;
  });
}

core::Result<std::optional<std::string>> first_difference(const std::string& a, const std::string& b) {
  const core::Result<Comparison> result = compare_checkpoints(a, b);
  if (!result) return result.failure();
  if (!result.value().tensors.empty()) return std::optional(to_text(result.value().tensors.front()));
  for (const ValueDifference& value : result.value().values) {
    if (!value.wall_clock) return std::optional(to_text(value));
  }
  return std::optional<std::string>();
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::string to_text(const TensorDifference& difference) {
  const std::string of = difference.set.empty() ? "" : " of " + difference.set;
  const std::string counts = std::to_string(difference.differing) + " of " + std::to_string(difference.elements) +
                             (difference.elements == 1 ? " element differs" : " elements differ") + ", by " +
                             core::short_number(difference.max_abs, 3) + " at most";
  const std::string name = core::escape_for_terminal(difference.name);
  switch (difference.kind) {
    case Kind::kOnlyInA: return name + of + " is only in a";
    case Kind::kOnlyInB: return name + of + " is only in b";
    case Kind::kShape:
      return name + of + " is " + shape_text(difference.shape_a) + " in a and " + shape_text(difference.shape_b) +
             " in b";
    case Kind::kDtype:
      return name + of + " is " + difference.dtype_a + " in a and " + difference.dtype_b + " in b; " + counts;
    case Kind::kValues: break;
  }
  const std::string index = difference.first.empty() ? "" : shape_text(difference.first);
  return name + index + of + " is " + core::short_number(difference.first_a, 9) + " in a and " +
         core::short_number(difference.first_b, 9) + " in b; " + counts;
}

std::string to_text(const ValueDifference& difference) {
  const std::string what = difference.path.empty() ? difference.file : difference.path + " of " + difference.file;
  const auto shown = [](const std::string& value) { return value.empty() ? "absent" : value; };
  return what + " is " + shown(difference.a) + " in a and " + shown(difference.b) + " in b";
}

}  // namespace runner::artifact
