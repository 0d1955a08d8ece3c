#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace components::tokenizer {

/// Memory that calls take for the time they last, so that the next call finds it grown. Safe to use from several
/// threads.
template <typename Memory>
class Pool {
 public:
  class Lease {
   public:
    explicit Lease(Pool& pool) : pool_(pool) {
      {
        const std::lock_guard<std::mutex> lock(pool.mutex_);
        if (!pool.unused_.empty()) {
          memory_ = std::move(pool.unused_.back());
          pool.unused_.pop_back();
        }
      }
      if (!memory_) memory_ = std::make_unique<Memory>();
    }
    ~Lease() {
      const std::lock_guard<std::mutex> lock(pool_.mutex_);
      if (pool_.unused_.size() < kUnusedMax) pool_.unused_.push_back(std::move(memory_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    Memory& operator*() { return *memory_; }

   private:
    Pool& pool_;
    std::unique_ptr<Memory> memory_;
  };

 private:
  static constexpr std::size_t kUnusedMax = 64;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> unused_;
};

}  // namespace components::tokenizer
