#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/node.h"

namespace trackers {

/// The run that a tracker reports.
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
  double value;                   ///< may be NaN or infinite
  bool is_system_metric = false;  ///< of the context "system": sampled by time, at the current step
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

/// A line of the run's log, without its end.
struct ConsoleLine {
  std::string text;
  std::int64_t time_ms;
  bool is_error;  ///< a warning or an error
};

/// How a run ended, if known; kOpen when it is active or unknown.
enum class Ending { kOpen, kFinished, kFailed, kStopped, kCrashed };

constexpr std::string_view to_text(Ending ending) {
  constexpr std::string_view kTexts[] = {"open", "finished", "failed", "stopped", "crashed"};
  return kTexts[static_cast<std::size_t>(ending)];
}

struct End {
  Ending ending = Ending::kOpen;
  std::string reason;          ///< reason given by the run, or ""
  std::int64_t time_ms = 0;    ///< 0 if unknown
  runner::core::Node summary;  ///< summary values by name; null if none
};

/// An error of an external tool, with its remedy.
class TrackerError : public runner::core::RunError {
 public:
  enum class Remedy {
    kRetry,   ///< retry later with the same data: it is down, slow or full
    kPause,   ///< pause until the user acts: a password, a version
    kReject,  ///< skip these data, which it does not accept; the next may fit
  };
  TrackerError(Remedy remedy, const std::string& message, const std::string& hint = "")
      : RunError(message, hint), remedy_(remedy) {}
  Remedy remedy() const { return remedy_; }

 private:
  Remedy remedy_;
};

}  // namespace trackers
