#include "components/data/record/skipped_records.h"

#include <algorithm>
#include <cctype>

#include "components/data/block_location.h"
#include "components/data/text_utils.h"

namespace components::data {
namespace {

/// Messages that differ in numbers and quoted values only are of one kind.
std::string kind_of(const std::string& message) {
  std::string kind;
  bool quoted = false;
  for (const char c : message) {
    if (c == '"') quoted = !quoted;
    if (!quoted && std::isdigit(static_cast<unsigned char>(c)) == 0) kind += c;
  }
  return kind;
}

}  // namespace

bool SkippedRecords::add(const std::string& path, std::int64_t line, const std::string& message) {
  ++count_;
  const auto [at, is_new] = places_.try_emplace(kind_of(message), kinds_.size());
  if (is_new && kinds_.size() == kKindsMax) {
    places_.erase(at);
    ++others_;
    return false;
  }
  if (is_new) kinds_.push_back({path + ":" + std::to_string(line) + ": " + message, 0});
  ++kinds_[at->second].count;
  return is_new;
}

std::string SkippedRecords::reasons() const {
  std::string text;
  for (const Kind& kind : kinds_) {
    text += (text.empty() ? "" : "; ") + kind.first;
    if (kind.count > 1) text += " (" + with_commas(kind.count) + " like it)";
  }
  if (others_ > 0) text += "; " + with_commas(others_) + " for other reasons";
  return text;
}

void SkippedRecords::tell(std::int64_t records, const Inputs& inputs) const {
  if (count_ == 0) return;
  inputs.diagnostics.warning(location_of(inputs.block, "on_bad_record"),
                             "data." + inputs.name + ": skipped " + with_commas(count_) + " of " +
                                 counted_large(records, "record", "records") + "; " + reasons());
}

}  // namespace components::data
