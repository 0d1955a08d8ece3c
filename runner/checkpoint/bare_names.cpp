#include "runner/checkpoint/bare_names.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace runner::checkpoint {
namespace {

using artifact::TensorBytes;

constexpr std::string_view kModule = "module.";
/// No module of a model is called so: they may be taken away wherever they are.
constexpr std::array<std::string_view, 3> kInner = {"_orig_mod.", "_fsdp_wrapped_module.",
                                                    "_checkpoint_wrapped_module."};

bool is_wrapper(std::string_view segment) {
  return segment == kModule || std::find(kInner.begin(), kInner.end(), segment) != kInner.end();
}

/// `a.b.c` -> `a.`, `b.`, `c`.
std::vector<std::string_view> segments_of(std::string_view name) {
  std::vector<std::string_view> segments;
  while (!name.empty()) {
    const std::size_t size = std::min(name.find('.'), name.size() - 1) + 1;
    segments.push_back(name.substr(0, size));
    name.remove_prefix(size);
  }
  return segments;
}

/// The longest that all names have and that ends with a wrapper, of modules that are no list's; "" when there is none.
std::string wrapping_prefix(const std::vector<TensorBytes>& tensors) {
  if (tensors.empty()) return "";
  std::string prefix, longest;
  for (const std::string_view segment : segments_of(tensors.front().name)) {
    const bool is_of_list = segment.find_first_not_of("0123456789.") == std::string_view::npos;
    prefix += segment;
    const bool have_all = std::all_of(tensors.begin(), tensors.end(),
                                      [&](const TensorBytes& tensor) { return tensor.name.starts_with(prefix); });
    if (is_of_list || !have_all) break;
    if (is_wrapper(segment)) longest = prefix;
  }
  return longest;
}

}  // namespace

BareNames::BareNames(const artifact::SafetensorsReader& reader) : reader_(reader) {
  take([](const std::string& name) { return name; });
}

BareNames::BareNames(const artifact::SafetensorsReader& reader,
                     const std::function<bool(const std::string&)>& is_needed)
    : reader_(reader) {
  std::string prefix = wrapping_prefix(reader.tensors());
  if (!prefix.empty() && is_needed(prefix)) prefix.clear();
  std::vector<std::string> taken;
  if (!prefix.empty()) taken.push_back(prefix);
  const bool is_clear = take([&](const std::string& name) {
    std::string bare;
    for (const std::string_view segment : segments_of(std::string_view(name).substr(prefix.size()))) {
      if (std::find(kInner.begin(), kInner.end(), segment) == kInner.end()) {
        bare += segment;
      } else if (std::find(taken.begin(), taken.end(), segment) == taken.end()) {
        taken.emplace_back(segment);
      }
    }
    return bare;
  });
  if (is_clear) {
    taken_ = std::move(taken);
  } else {
    take([](const std::string& name) { return name; });
  }
}

/// Whether no two have one name then.
bool BareNames::take(const std::function<std::string(const std::string&)>& bare) {
  tensors_.clear();
  by_name_.clear();
  bare_of_.clear();
  for (const TensorBytes& bytes : reader_.tensors()) {
    tensors_.push_back({bare(bytes.name), &bytes});
    by_name_.emplace(tensors_.back().name, &bytes);
    bare_of_.emplace(bytes.name, tensors_.back().name);
  }
  return by_name_.size() == tensors_.size();
}

const TensorBytes* BareNames::find(const std::string& name) const {
  const auto at = by_name_.find(name);
  return at != by_name_.end() ? at->second : nullptr;
}

const std::string& BareNames::bare(const std::string& name) const { return bare_of_.at(name); }

}  // namespace runner::checkpoint
