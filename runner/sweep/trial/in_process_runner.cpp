#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "runner/core/error.h"
#include "runner/launch/exit_message.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::sweep {
namespace {

/// One thread for all of them: what LibTorch keeps of a thread, such as its helpers, is kept from one to the next.
class Within final : public Trainings {
 public:
  explicit Within(TrainHere train) : train_(std::move(train)), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw core::RunError(std::string("cannot create an event: ") + std::strerror(errno));
  }

  ~Within() override {
    {
      const std::lock_guard lock(mutex_);
      leaves_ = true;
      signal_ = SIGTERM;
    }
    wanted_.notify_one();
    if (thread_.joinable()) thread_.join();
    close(event_);
  }

  void start(std::int64_t trial, Training training) override {
    if (!thread_.joinable()) begin();
    {
      const std::lock_guard lock(mutex_);
      RUNNER_ASSERT(trial_ < 0, "sweep.isolation none has one trial at once");
      trial_ = trial;
      task_ = std::move(training);
      signal_ = 0;
    }
    wanted_.notify_one();
  }

  void send(std::int64_t trial, int signal) override {
    if (signal == SIGKILL) _exit(128 + SIGINT);  // as a training does that is told twice
    const std::lock_guard lock(mutex_);
    if (trial == trial_) signal_ = signal;
  }

  std::vector<int> descriptors() const override { return {event_}; }

  std::vector<End> take_ended() override {
    std::uint64_t ignored = 0;
    while (read(event_, &ignored, sizeof ignored) > 0) {
    }
    const std::lock_guard lock(mutex_);
    return std::exchange(ended_, {});
  }

 private:
  void begin() {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error& refused) {
      throw core::RunError(std::string("cannot start a thread: ") + refused.what());
    }
  }

  void work() {
    for (;;) {
      Training training;
      {
        std::unique_lock lock(mutex_);
        wanted_.wait(lock, [this] { return task_ || leaves_; });
        if (leaves_) return;
        training = *std::exchange(task_, std::nullopt);
      }
      std::string errors;
      const int status = train_(training, signal_, errors);
      {
        const std::lock_guard lock(mutex_);
        ended_.push_back({std::exchange(trial_, -1), status, launch::exit_message(errors)});
      }
      const std::uint64_t one = 1;
      while (write(event_, &one, sizeof one) < 0 && errno == EINTR) {
      }
    }
  }

  const TrainHere train_;
  const int event_;  ///< counts trainings that ended
  std::atomic<int> signal_ = 0;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::optional<Training> task_;  // guarded by mutex_
  std::int64_t trial_ = -1;       // guarded by mutex_
  std::vector<End> ended_;        // guarded by mutex_
  bool leaves_ = false;           // guarded by mutex_
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Trainings> in_process_runner(TrainHere train) { return std::make_unique<Within>(std::move(train)); }

}  // namespace runner::sweep
