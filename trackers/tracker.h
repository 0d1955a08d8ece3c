#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runner/core/node.h"
#include "trackers/io/tracker_data.h"

namespace trackers {

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

  /// Throws what would keep start() from beginning and is known without asking the tool: it does not know its server.
  virtual void check(const runner::core::Node& /*state*/) const {}
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
