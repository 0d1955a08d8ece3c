#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/node.h"

namespace trackers {

/// The run that a tracker tells somebody about.
struct Run {
  std::string dir;  ///< its folder
  std::string id, name;
  std::string project;  ///< what tools group runs by: the recipe's run_name
  std::int64_t created_ms = 0;
  runner::core::Node config;  ///< the resolved recipe; no secret is in it
  std::vector<std::string> tags;
  std::vector<std::string> command_line;
};

struct Point {
  const std::string* name;  ///< `loss`, `val/accuracy`, `system/cpu`
  std::int64_t step, time_ms;
  double value;             ///< may be NaN or infinite
  bool of_machine = false;  ///< of the context "system": taken by the clock, at the step that was going on
};

struct Text {
  std::string name, text;
  std::int64_t step, time_ms;
};

/// Bins of equal width between `least` and `most`.
struct Histogram {
  std::string name;
  std::int64_t step, time_ms;
  double least = 0, most = 0;
  std::vector<double> counts;
};

/// A picture as a PNG file.
struct Image {
  std::string name, caption;
  std::string path;
  std::int64_t step, time_ms;
};

struct Table {
  std::string name;
  std::int64_t step, time_ms;
  std::vector<std::string> columns;
  std::vector<std::vector<runner::core::Node>> rows;  ///< scalars, as many in each as there are columns
};

/// A file or folder that belongs to the run: a checkpoint, a trace, a diff.
struct Artifact {
  std::string name, kind;
  std::string path;
  std::int64_t step, time_ms;
};

/// What the run said, without the line's end.
struct ConsoleLine {
  std::string text;
  std::int64_t time_ms;
  bool is_error;  ///< a warning or an error
};

/// How a run ended, as far as is known; kOpen when it goes on or when nobody can say.
enum class Ending { kOpen, kFinished, kFailed, kStopped, kCrashed };

constexpr std::string_view to_text(Ending ending) {
  constexpr std::string_view kTexts[] = {"open", "finished", "failed", "stopped", "crashed"};
  return kTexts[static_cast<std::size_t>(ending)];
}

struct End {
  Ending ending = Ending::kOpen;
  std::string reason;          ///< as the run gave it; "" when it did not
  std::int64_t time_ms = 0;    ///< 0 when nobody knows
  runner::core::Node summary;  ///< key figures by name; null when there are none
};

/// What went wrong with somebody else's tool, and what to do about it.
class TrackerError : public runner::core::RunError {
 public:
  enum class Remedy {
    kTryAgain,  ///< later, with the same data: it is down, slow or full
    kPause,     ///< not before somebody did something: a password, a version
    kLeaveOut,  ///< it does not take these very data; the next may fit
  };
  TrackerError(Remedy remedy, const std::string& message, const std::string& hint = "")
      : RunError(message, hint), remedy_(remedy) {}
  Remedy remedy() const { return remedy_; }

 private:
  Remedy remedy_;
};

/// Brings what a run keeps to a tool. It is called by one thread of a process of its own, never by the training: it may
/// block, fail and crash at nobody's expense. What it is given is in run.db already and comes once more when it was not
/// flushed, so a tracker keeps no queue.
///
/// What a tool holds is in the schema of its tracker (x-holds); a call for anything else need not be there. Of the
/// names of metrics nothing is known but that they are UTF-8.
///
/// Errors: TrackerError; any other exception pauses it. A call that throws kLeaveOut has taken nothing.
class Tracker {
 public:
  virtual ~Tracker() = default;

  /// `state` is what state() gave at the last flush, null the first time. A tool that keeps files takes back whatever
  /// it wrote after that.
  virtual void start(const Run& run, const runner::core::Node& state) = 0;
  /// What was given for steps beyond this one (-1: all of it) is not the run's any more: it went back, or goes on from
  /// a checkpoint. Not called where nothing was given beyond. One that cannot take back single points says so: it is
  /// started anew and given all that counts.
  virtual void rewind(std::int64_t /*step*/) {}
  virtual bool starts_anew_after_rewind() const { return false; }
  /// At most points_max() of them: what stands or falls together.
  virtual void log(std::span<const Point> points) = 0;
  virtual std::size_t points_max() const { return SIZE_MAX; }
  /// Of the points of the last log(): those that the tool has no place for.
  virtual std::int64_t left_out() const { return 0; }
  virtual void log_text(const Text&) {}
  virtual void log_histogram(const Histogram&) {}
  virtual void log_image(const Image&) {}
  virtual void log_table(const Table&) {}
  virtual void log_artifact(const Artifact&) {}
  virtual void log_console(std::span<const ConsoleLine>) {}
  /// Everything given so far has reached the tool when this returns; on a disk where `durable`.
  virtual void flush(bool durable) = 0;
  /// What a start needs to go on from the last flush.
  virtual runner::core::Node state() const { return {}; }
  /// After everything was flushed; state() is asked for once more. It may go on all the same: a run is resumed.
  virtual void finish(const End&) {}
};

struct Inputs {
  std::string name;  ///< of the tracker in its run: several of one type have names of their own
};

std::shared_ptr<Tracker> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace trackers
