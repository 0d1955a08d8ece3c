#include "runner/train/data/sample_lengths.h"

#include <algorithm>
#include <vector>

#include "components/data/data.h"

namespace runner::train {
namespace {

constexpr std::int64_t kGroups = 64;

/// 0: samples do not differ in length, or it is not known how.
std::int64_t longest_of(const components::data::Dataset& data) {
  if (data.is_stream()) return 0;
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < data.size(); ++i) longest = std::max(longest, data.length_of(i));
  return longest;
}

}  // namespace

components::BatchSpec longest_batch(const components::data::Dataset& data, std::int64_t multiple) {
  components::BatchSpec batch = data.signature();
  const std::int64_t longest = batch.padded() ? longest_of(data) : 0;
  if (longest == 0) return batch;
  const std::int64_t positions = (longest + multiple - 1) / multiple * multiple;
  for (components::TensorSpec& tensor : batch.tensors) {
    if (tensor.max_length > 0) tensor.max_length = std::min(positions, std::max(tensor.max_length, multiple));
  }
  return batch;
}

double mean_over_lengths(const components::data::Dataset& data, const std::function<double(std::int64_t)>& value) {
  const std::int64_t longest = data.signature().padded() ? longest_of(data) : 0;
  if (longest == 0) return value(std::max<std::int64_t>(1, data.signature().max_length()));
  struct Group {
    std::int64_t samples = 0, positions = 0;
  };
  std::vector<Group> groups(static_cast<std::size_t>(std::min(kGroups, longest) + 1));
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const std::int64_t length = data.length_of(i);
    Group& group = groups[static_cast<std::size_t>(length * std::min(kGroups, longest) / longest)];
    ++group.samples;
    group.positions += length;
  }
  double sum = 0;
  for (const Group& group : groups) {
    if (group.samples == 0) continue;
    const std::int64_t mean = (group.positions + group.samples / 2) / group.samples;
    sum += static_cast<double>(group.samples) * value(std::max<std::int64_t>(1, mean));
  }
  return sum / static_cast<double>(data.size());
}

}  // namespace runner::train
