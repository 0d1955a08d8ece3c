#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runner/core/node.h"
#include "trackers/io/tracker_data.h"

namespace trackers {

/// Sends a run's data to a tool. Called by one thread of a separate process, never by the training: it may block, fail
/// and crash without harm. Its data are in run.db and are repeated unless flushed, so a tracker keeps no queue.
///
/// The kinds of data of a tool are in the schema of its tracker (x-holds); other calls need no override. Names of
/// metrics may be any UTF-8.
///
/// Errors: TrackerError; any other exception pauses it. A call that throws kReject has accepted nothing.
class Tracker {
 public:
  virtual ~Tracker() = default;

  /// Throws errors that would prevent start() and are known without contacting the tool, such as a missing server
  /// address.
  virtual void check(const runner::core::Node& /*state*/) const {}
  /// `state` is from state() at the last flush, null the first time. A tool that keeps files removes what it wrote
  /// after that.
  virtual void start(const Run& run, const runner::core::Node& state) = 0;
  /// Discards data of steps beyond this one (-1: all): the run rolled back, or resumed from a checkpoint. Not called if
  /// there are none. A tracker that cannot delete single points says so: it is restarted and receives all valid data
  /// again.
  virtual void rewind(std::int64_t /*step*/) {}
  virtual bool restarts_after_rewind() const { return false; }
  /// At most points_max() of them: one atomic batch.
  virtual void log(std::span<const Point> points) = 0;
  virtual std::size_t points_max() const { return SIZE_MAX; }
  /// Number of points of the last log() that the tool cannot store.
  virtual std::int64_t rejected_points() const { return 0; }
  virtual void log_text(const Text&) {}
  virtual void log_histogram(const Histogram&) {}
  virtual void log_image(const Image&) {}
  virtual void log_table(const Table&) {}
  virtual void log_artifact(const Artifact&) {}
  virtual void log_console(std::span<const ConsoleLine>) {}
  /// Everything sent so far has reached the tool when this returns; with `durable` its disk.
  virtual void flush(bool durable) = 0;
  /// What a start needs to continue from the last flush.
  virtual runner::core::Node state() const { return {}; }
  /// Called after everything was flushed, followed by state(). The run may still continue: it may be resumed.
  virtual void finish(const End&) {}
};

struct Inputs {
  std::string name;  ///< name of the tracker in its run: several of one type have different names
};

std::shared_ptr<Tracker> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace trackers
