#include <limits>

#include "components/data/data.h"
#include "components/data/stream.h"

namespace components::data {

Stream::~Stream() = default;
Stream::Sample::~Sample() = default;
Stream::Mark::~Mark() = default;

void Dataset::fetch_at(const Turn&, std::span<const std::int64_t> indices, TensorMap& batch) const {
  fetch(indices, batch);
}

std::unique_ptr<Stream> Dataset::open_stream(const StreamOptions&) const { return nullptr; }

double Dataset::unigram_entropy() const { return std::numeric_limits<double>::quiet_NaN(); }

std::string Dataset::decode(std::span<const std::int64_t>) const { return ""; }

std::vector<std::int64_t> Dataset::encode(const std::string&) const { return {}; }

std::vector<std::pair<std::string, runner::core::Node>> Dataset::columns_of(std::int64_t) const { return {}; }

std::optional<Record> Dataset::record_of(std::int64_t) const { return std::nullopt; }

std::vector<Part> Dataset::parts_of(std::int64_t index) const {
  const std::int64_t length = signature().padded() ? length_of(index) : tokens_per_sample();
  if (length == 0) return {};
  return {{0, length, record_of(index)}};
}

Account Dataset::account() const { return {.records = records()}; }

std::vector<std::pair<std::string, std::string>> Dataset::kept_of(std::int64_t) const { return {}; }

std::string Dataset::class_name(std::int64_t number) const { return std::to_string(number); }

}  // namespace components::data
