#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "components/data/data.h"

namespace components::data {

/// Records that `on_bad_record: skip` leaves out: how many, and of each kind where the first one is.
class SkippedRecords {
 public:
  /// Whether it is the first of its kind that is listed.
  bool add(const std::string& path, std::int64_t line, const std::string& message);
  std::int64_t count() const { return count_; }
  /// The first of each kind with file and line, and how many are like it; "" without any.
  std::string reasons() const;
  /// Warns about them, at the key `on_bad_record` of the block.
  void tell(std::int64_t records, const Inputs& inputs) const;

 private:
  struct Kind {
    std::string first;  // with file and line
    std::int64_t count = 0;
  };

  static constexpr std::size_t kKindsMax = 8;
  std::map<std::string, std::size_t> places_;  // in kinds_, by the message without its numbers
  std::vector<Kind> kinds_;                    // in the order in which they were met
  std::int64_t count_ = 0, others_ = 0;
};

}  // namespace components::data
