#include "runner/train/data/prefetcher.h"

#include <signal.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "runner/core/error.h"

namespace runner::train {
namespace {

/// Threads started while this lives block all signals except their own faults.
class SignalsStayHere {
 public:
  SignalsStayHere() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsStayHere() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsStayHere(const SignalsStayHere&) = delete;
  SignalsStayHere& operator=(const SignalsStayHere&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Prefetcher::Prefetcher(Claim claim_batch, const BatchSchedule& schedule, Position start, const Options& options)
    : schedule_(schedule),
      claim_batch_(std::move(claim_batch)),
      to_claim_(schedule.first_mine(start)),
      slots_(static_cast<std::size_t>(std::max<std::int64_t>(1, options.batches_max))),
      to_take_(to_claim_) {
  RUNNER_ASSERT(schedule.samples_per_epoch > 0 && schedule.batch_size > 0,
                "an empty epoch is refused before training starts");
  const SignalsStayHere signals_stay_here;
  try {
    for (int i = 0; i < options.workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    end();
    throw core::RunError(
        "cannot start loader.num_workers = " + std::to_string(options.workers) + " threads: " + error.code().message(),
        "use fewer");
  }
}

Prefetcher::~Prefetcher() { end(); }

void Prefetcher::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  room_.notify_all();
  threads_.clear();
}

bool Prefetcher::wait_for_room(std::int64_t number) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return ending_ || number < taken_ + static_cast<std::int64_t>(slots_.size()); });
  return !ending_;
}

bool Prefetcher::claim(std::int64_t& number, Job& job) {
  const std::lock_guard lock(claiming_);
  number = claimed_;
  if (!wait_for_room(number)) return false;
  ++claimed_;
  const Position position = to_claim_;
  const std::int64_t count = schedule_.batch_at(position);
  to_claim_ = schedule_.first_mine(schedule_.after(position, count));
  job = claim_batch_(position, count);
  return true;
}

void Prefetcher::work() {
  for (;;) {
    std::int64_t number = -1;
    Slot slot;
    try {
      Job job;
      if (!claim(number, job)) return;
      job(slot.batch);
    } catch (...) {
      slot.batch.clear();
      slot.failure = std::current_exception();
    }
    deliver(number, std::move(slot));
  }
}

void Prefetcher::deliver(std::int64_t number, Slot&& slot) {
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    slot.ready = true;
    slot_of(number) = std::move(slot);
    awaited = number == taken_;
  }
  if (awaited) ready_.notify_one();
}

bool Prefetcher::take(const Position& position, std::int64_t count, components::TensorMap& batch) {
  if (position != to_take_ || count != schedule_.batch_at(position)) return false;
  Slot slot;
  {
    std::unique_lock lock(mutex_);
    Slot& next = slot_of(taken_);
    ready_.wait(lock, [&next] { return next.ready; });
    slot = std::exchange(next, Slot{});
    ++taken_;
  }
  room_.notify_one();
  to_take_ = schedule_.first_mine(schedule_.after(position, count));
  if (slot.failure) std::rethrow_exception(slot.failure);
  batch = std::move(slot.batch);
  return true;
}

}  // namespace runner::train
