#include "trackers/follow.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "runner/core/log.h"
#include "runner/core/units.h"
#include "runner/store/console_log.h"
#include "runner/store/feed/cursors.h"
#include "runner/store/feed/feed.h"
#include "runner/store/lease.h"
#include "trackers/io/table_file.h"

namespace trackers {
namespace {

using runner::core::Node;
using runner::store::Feed;
using runner::store::FeedArtefact;
using runner::store::FeedBatch;
using runner::store::FeedEnd;
using runner::store::FeedEvent;
using runner::store::SqliteError;
using Remedy = TrackerError::Remedy;

constexpr std::int64_t kPollMs = 250;
constexpr std::int64_t kFlushMs = 1000;
constexpr std::int64_t kFlushPoints = 262'144;  // or after this many: unflushed data are in memory
constexpr std::int64_t kPointsMax = 65'536;     // of one piece: some megabytes
constexpr std::int64_t kBackoffMs = 1000, kBackoffMaxMs = 60'000;

Ending ending_of(const std::string& status, bool held) {
  if (status == "running") return held ? Ending::kOpen : Ending::kCrashed;
  if (status == "finished") return Ending::kFinished;
  if (status == "stopped") return Ending::kStopped;
  if (status == "crashed") return Ending::kCrashed;
  return Ending::kFailed;
}

std::string text_or(const Node& data, const char* key, const std::string& otherwise) {
  const Node* value = data.is_mapping() ? data.find(key) : nullptr;
  return value != nullptr && value->is_string() ? value->as_string() : otherwise;
}

double number_or(const Node& data, const char* key, double otherwise) {
  const Node* value = data.is_mapping() ? data.find(key) : nullptr;
  return value != nullptr && value->is_number() ? value->as_double() : otherwise;
}

/// Anything but a point.
struct Happening {
  std::int64_t step;
  std::function<void()> hand_over;
};

class Following {
 public:
  Following(const Run& run, Tracker& tracker, const FollowOptions& options, const runner::core::Clock& clock,
            Waiter& waiter)
      : run_(run), tracker_(tracker), options_(options), clock_(clock), waiter_(waiter) {}

  FollowResult result() {
    std::int64_t backoff_ms = kBackoffMs;
    for (;;) {
      std::optional<TrackerError> problem;
      try {
        go();
        return result_;
      } catch (const TrackerError& error) {
        if (error.remedy() != Remedy::kRetry || !options_.until_end) return stopped(error);
        report(error);
        problem = error;
      } catch (const SqliteError& error) {
        if (!error.is_transient() || !options_.until_end) throw;
        problem = TrackerError(Remedy::kRetry, error.what());
      }
      if (flushed_since_error_) backoff_ms = kBackoffMs;
      flushed_since_error_ = false;
      if (!waiter_.wait(backoff_ms)) return with(*problem);
      backoff_ms = std::min(2 * backoff_ms, kBackoffMaxMs);
    }
  }

 private:
  /// From the last flush to the end; after any error the next attempt starts at the last flush again.
  void go() {
    if (!cursors_) cursors_.emplace(run_.dir);
    if (!feed_) feed_.emplace(run_.dir);
    record_ = cursors_->get(options_.name);
    points_ = 0;
    started_ = false;
    for (bool leaving = false;;) {
      // Queried before reading: what was written before the end is read after it.
      const FeedEnd end_of_run = feed_->end();
      const Ending ending = ending_of(end_of_run.status, runner::store::live_owner(run_.dir, clock_).has_value());
      const FeedBatch batch = feed_->next(record_.cursor, kPointsMax);
      const bool said_something = take_console();
      if (!batch.empty()) take(batch);
      if (!batch.empty() || said_something) {
        const bool is_time = clock_.monotonic_ns() - flushed_ns_ >= kFlushMs * 1'000'000;
        if (is_time || points_ >= kFlushPoints) flush(false);
        continue;
      }
      if (ending != Ending::kOpen || !options_.until_end || leaving) return end(ending, end_of_run);
      start_once();
      if (dirty_) flush(false);
      leaving = !waiter_.wait(kPollMs);  // not before reading what was written meanwhile, and the ending
    }
  }

  /// Not before there is something to send: a fully synced run is left alone.
  void start_once() {
    if (std::exchange(started_, true)) return;
    guarded([&] { tracker_.start(run_, record_.state); });
    flushed_ns_ = clock_.monotonic_ns();
  }

  void take(const FeedBatch& batch) {
    start_once();
    if (batch.rewind_to && record_.cursor.branch >= 0 && tracker_.restarts_after_rewind()) {
      record_.cursor.branch = -1;
      record_.console_bytes = 0;
      record_.rejected = 0;
      record_.state = Node::null();
      cursors_->put(options_.name,
                    record_);  // the tool's data are gone, even if this process ends before the next flush
      guarded([&] { tracker_.start(run_, record_.state); });
      return;  // the next piece is the whole lineage up to here
    }
    guarded([&] {
      if (batch.rewind_to && record_.cursor.branch >= 0) tracker_.rewind(*batch.rewind_to);
    });
    hand_over_by_step(batch);
    record_.cursor = batch.end;
    dirty_ = true;
  }

  /// False when nothing was sent since the last time.
  bool take_console() {
    const auto rows = runner::store::read_console(run_.dir, record_.console_bytes);
    if (rows.empty()) return false;
    start_once();
    std::vector<ConsoleLine> lines;
    std::int64_t time_ms = run_.created_ms;
    for (const auto& row : rows) {
      if (row.time_ms > 0) time_ms = row.time_ms;
      lines.push_back({row.text, time_ms, row.is_warning});
    }
    taken([&] { tracker_.log_console(lines); });
    dirty_ = true;
    return true;
  }

  /// Some tools accept only increasing steps.
  void hand_over_by_step(const FeedBatch& batch) {
    const auto by_step = [](const auto& a, const auto& b) { return a.step < b.step; };
    std::vector<Point> points = points_of(batch);
    std::stable_sort(points.begin(), points.end(), by_step);
    std::span<const Point> rest = points;
    std::vector<Happening> others;
    for (const FeedEvent& event : batch.events) others.push_back({event.step, [&] { hand_over(event); }});
    for (const FeedArtefact& artefact : batch.artefacts) {
      others.push_back({artefact.step, [&] { hand_over(artefact); }});
    }
    std::stable_sort(others.begin(), others.end(), by_step);
    for (const Happening& other : others) {
      const auto beyond = std::upper_bound(rest.begin(), rest.end(), other.step,
                                           [](std::int64_t step, const Point& point) { return step < point.step; });
      hand_over(rest.first(static_cast<std::size_t>(beyond - rest.begin())));
      rest = rest.subspan(static_cast<std::size_t>(beyond - rest.begin()));
      other.hand_over();
    }
    hand_over(rest);
  }

  std::vector<Point> points_of(const FeedBatch& batch) {
    std::vector<Point> points;
    points.reserve(batch.points.size());
    for (const auto& point : batch.points) {
      points.push_back({&name_of(point.series), point.step, point.time_ms, point.value,
                        feed_->series(point.series).context == "system"});
    }
    return points;
  }

  void hand_over(std::span<const Point> points) {
    const std::size_t most = tracker_.points_max();
    while (!points.empty()) {
      const auto some = points.first(std::min(points.size(), most));
      const auto count = static_cast<std::int64_t>(some.size());
      if (taken([&] { tracker_.log(some); }, count)) {
        reject(tracker_.rejected_points());
        points_ += count - tracker_.rejected_points();
      }
      points = points.subspan(some.size());
    }
  }

  void hand_over(const FeedEvent& event) {
    const std::string name = text_or(event.data, "name", event.kind);
    if (event.kind == "text") {
      const Text text{name, text_or(event.data, "text", ""), event.step, event.time_ms};
      taken([&] { tracker_.log_text(text); });
    } else if (event.kind == "histogram" && event.data.find("counts") != nullptr) {
      Histogram histogram{
          name, event.step, event.time_ms, number_or(event.data, "min", 0), number_or(event.data, "max", 0), {}};
      for (const Node& count : event.data.find("counts")->items()) histogram.counts.push_back(count.as_double());
      taken([&] { tracker_.log_histogram(histogram); });
    }
  }

  /// Skips what no longer exists, such as an old checkpoint.
  void hand_over(const FeedArtefact& artefact) {
    const std::string path = (std::filesystem::path(run_.dir) / artefact.path).string();
    const std::string name = text_or(artefact.data, "name", artefact.path);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;
    if (artefact.kind == "image") {
      const Image image{name, text_or(artefact.data, "caption", ""), path, artefact.step, artefact.time_ms};
      taken([&] { tracker_.log_image(image); });
    } else if (artefact.kind == "table") {
      std::optional<Table> table = read_table(path);
      if (!table) {
        reject(1);
        return report(TrackerError(Remedy::kReject, path + " has no table"));
      }
      table->name = name;
      table->step = artefact.step;
      table->time_ms = artefact.time_ms;
      taken([&] { tracker_.log_table(*table); });
    } else {
      const Artifact artifact{name, artefact.kind, path, artefact.step, artefact.time_ms};
      taken([&] {
        try {
          tracker_.log_artifact(artifact);
        } catch (const std::filesystem::filesystem_error& error) {  // deleted meanwhile
          throw TrackerError(Remedy::kReject, error.what());
        }
      });
    }
  }

  /// False when the tool refuses only this; then it is skipped.
  bool taken(const std::function<void()>& give, std::int64_t count = 1) {
    try {
      guarded(give);
      return true;
    } catch (const TrackerError& error) {
      if (error.remedy() != Remedy::kReject) throw;
      reject(count);
      report(error);
      return false;
    }
  }

  void reject(std::int64_t count) {
    result_.rejected_points += count;
    record_.rejected += count;
  }

  /// By id, so that a name is built once.
  const std::string& name_of(std::int64_t series) {
    const auto index = static_cast<std::size_t>(series);
    if (index >= names_.size()) names_.resize(index + 1);
    if (!names_[index]) names_[index] = std::make_unique<std::string>(feed_->series(series).key());
    return *names_[index];
  }

  void flush(bool durable) {
    guarded([&] { tracker_.flush(durable); });
    record_.state = tracker_.state();
    record_.ended.clear();
    record_.problem.clear();
    cursors_->put(options_.name, record_);
    result_.points += std::exchange(points_, 0);
    flushed_ns_ = clock_.monotonic_ns();
    dirty_ = false;
    flushed_since_error_ = true;
  }

  void end(Ending ending, const FeedEnd& run) {
    const std::string told(to_text(ending));
    if (started_ || record_.ended != told) {
      start_once();
      flush(true);
      guarded([&] { tracker_.finish({ending, run.reason, run.time_ms, run.summary}); });
      record_.ended = told;
      record_.state = tracker_.state();
      cursors_->put(options_.name, record_);
    }
    feed_.reset();
    if (ending != Ending::kOpen) runner::store::checkpoint_wal(run_.dir);
  }

  /// Any other exception is a bug in the tracker: a retry may not help.
  template <typename Body>
  static void guarded(Body body) {
    try {
      body();
    } catch (const TrackerError&) {
      throw;
    } catch (const std::exception& error) {
      throw TrackerError(Remedy::kPause, error.what());
    } catch (...) {  // a plugin's
      throw TrackerError(Remedy::kPause, "the tracker threw an unknown exception");
    }
  }

  FollowResult& stopped(const TrackerError& error) {
    note(error);
    return with(error);
  }

  FollowResult& with(const TrackerError& error) {
    result_.problem = error.what();
    result_.hint = error.hint();
    return result_;
  }

  void report(const TrackerError& error) {
    const char* what = error.remedy() == Remedy::kReject ? "; this is skipped" : "; retrying";
    if (error.remedy() != Remedy::kReject) note(error);  // a flush since the last time has removed it
    if (std::exchange(told_, error.what()) == error.what()) return;
    runner::core::log_warning("tracker " + options_.name + ": " + error.what() + what);
  }

  /// For users who inspect the run, in addition to the record of the last flush.
  void note(const TrackerError& error) {
    try {
      runner::store::TrackerRecord flushed = cursors_->get(options_.name);
      flushed.problem = error.what();
      flushed.problem_ms = clock_.wall_ms();
      cursors_->put(options_.name, flushed);
    } catch (const SqliteError& failure) {  // the retry matters more than its record
      runner::core::log_debug(failure.what());
    }
  }

  const Run& run_;
  Tracker& tracker_;
  const FollowOptions& options_;
  const runner::core::Clock& clock_;
  Waiter& waiter_;

  std::optional<runner::store::Cursors> cursors_;
  std::optional<Feed> feed_;
  runner::store::TrackerRecord record_;
  std::vector<std::unique_ptr<std::string>> names_;
  std::int64_t points_ = 0;  // sent since the last flush
  std::int64_t flushed_ns_ = 0;
  bool started_ = false, dirty_ = false, flushed_since_error_ = false;
  std::string told_;
  FollowResult result_;
};

}  // namespace

FollowResult follow(const Run& run, Tracker& tracker, const FollowOptions& options, const runner::core::Clock& clock,
                    Waiter& waiter) {
  return Following(run, tracker, options, clock, waiter).result();
}

}  // namespace trackers
