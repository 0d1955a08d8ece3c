#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

namespace components::data {

/// Packs items into rows of up to `length` positions: each goes into the first of the open rows that has room for it;
/// of too many the oldest is closed. Depends on the items' lengths and order only.
template <typename Item>
class RowPacker {
 public:
  struct Open {
    std::vector<Item> items;
    std::int64_t length = 0;  ///< of all of them
  };
  /// Is given each row that is full, or will not be filled any more, in the order of the rows.
  using Close = std::function<void(std::vector<Item>&& items, std::int64_t length)>;

  RowPacker(std::int64_t length, Close close) : length_(length), close_(std::move(close)) {}

  void add(Item item, std::int64_t length) {
    auto row =
        std::find_if(open_.begin(), open_.end(), [&](const Open& one) { return one.length + length <= length_; });
    if (row == open_.end()) {
      if (open_.size() == kOpenMax) close(open_.begin());
      row = open_.emplace(open_.end());
    }
    row->items.push_back(std::move(item));
    row->length += length;
    if (row->length == length_) close(row);
  }

  /// Closes all rows.
  void flush() {
    while (!open_.empty()) close(open_.begin());
  }

  const std::list<Open>& open() const { return open_; }
  void restore(std::list<Open> open) { open_ = std::move(open); }

 private:
  void close(typename std::list<Open>::iterator row) {
    close_(std::move(row->items), row->length);
    open_.erase(row);
  }

  static constexpr std::size_t kOpenMax = 64;  ///< bounds the time; few rows stay half empty
  std::int64_t length_;
  Close close_;
  std::list<Open> open_;
};

}  // namespace components::data
