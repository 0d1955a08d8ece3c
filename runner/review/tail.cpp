#include "runner/review/tail.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "runner/core/language/name_map.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/store/feed/feed.h"
#include "runner/store/run_files.h"
#include "runner/store/system_metrics.h"

namespace runner::review {
namespace {

using store::RunSummary;

constexpr std::int64_t kPollMs = 200;
constexpr std::int64_t kPointsAtOnce = 10'000;
constexpr std::size_t kEventBytesShown = 2000;

/// Holds back all but the last lines of what was there before, then lets everything through.
class Lines {
 public:
  Lines(std::size_t kept, const std::function<void(const std::string&)>& write) : kept_(kept), write_(write) {}

  void add(std::string line) {
    line += "\n";
    if (flowing_) return write_(line);
    held_.push_back(std::move(line));
    if (held_.size() > kept_) held_.pop_front();
  }
  void flow() {
    if (flowing_) return;
    flowing_ = true;
    for (const std::string& line : held_) write_(line);
    held_.clear();
  }

 private:
  std::size_t kept_;
  const std::function<void(const std::string&)>& write_;
  std::deque<std::string> held_;
  bool flowing_ = false;
};

/// Where the lines come from.
class Source {
 public:
  virtual ~Source() = default;
  /// Takes what there is; false when there was nothing new.
  virtual bool read(Lines& lines) = 0;
  /// The run has ended, and everything was read: what is still held back.
  virtual void end(Lines& lines) = 0;
};

class Metrics final : public Source {
 public:
  Metrics(const std::string& run_dir, const std::vector<std::string>& names) : run_dir_(run_dir), names_(names) {}

  bool read(Lines& lines) override {
    if (!feed_ && !open()) return false;
    const store::FeedBatch batch = feed_->next(cursor_, kPointsAtOnce);
    if (batch.empty()) {
      end(lines);  // a step is written at once: what there is of it is all of it
      return false;
    }
    if (batch.rewind_to) {
      end(lines);
      lines.add("back to step " + std::to_string(std::max<std::int64_t>(*batch.rewind_to, 0)));
    }
    auto event = batch.events.begin();
    for (const store::FeedPoint& point : batch.points) {
      for (; event != batch.events.end() && event->time_ms < point.time_ms; ++event) add(*event, lines);
      add(point, lines);
    }
    for (; event != batch.events.end(); ++event) add(*event, lines);
    cursor_ = batch.end;
    return true;
  }

  void end(Lines& lines) override {
    if (!line_.empty()) lines.add("step " + std::to_string(step_) + std::exchange(line_, {}));
  }

 private:
  bool open() {
    try {
      feed_ = std::make_unique<store::Feed>(run_dir_);
    } catch (const store::SqliteError& error) {
      if (!error.is_transient()) throw;  // a run that has just begun has no database yet
    }
    return feed_ != nullptr;
  }

  bool wanted(const store::FeedSeries& series) const {
    if (names_.empty()) return series.context != store::kSystemContext;
    return std::any_of(names_.begin(), names_.end(),
                       [key = series.key()](const std::string& name) { return core::matches_wildcard(name, key); });
  }

  void add(const store::FeedPoint& point, Lines& lines) {
    const store::FeedSeries& series = feed_->series(point.series);
    if (!wanted(series)) return;
    if (point.step != step_) end(lines);
    step_ = point.step;
    line_ += "  " + core::escape_for_terminal(series.key()) + " " + terminal::number_text(point.value);
  }

  void add(const store::FeedEvent& event, Lines& lines) {
    if (!names_.empty()) return;
    end(lines);
    std::string text = core::to_json(event.data, -1);
    if (text.size() > kEventBytesShown) {
      text.resize(core::first_columns(text, kEventBytesShown).size());
      text += "...";
    }
    lines.add("step " + std::to_string(event.step) + "  " + event.kind + " " + core::escape_for_terminal(text));
  }

  std::string run_dir_;
  std::vector<std::string> names_;
  std::unique_ptr<store::Feed> feed_;
  store::Cursor cursor_;
  std::int64_t step_ = -1;
  std::string line_;
};

class Log final : public Source {
 public:
  explicit Log(const std::string& path) : file_(path, std::ios::binary) {}

  bool read(Lines& lines) override {
    bool any = false;
    file_.clear();
    for (std::string piece; std::getline(file_, piece);) {
      any = true;
      line_ += piece;
      if (file_.eof()) return any;  // the rest of the line is still to come
      lines.add(core::escape_for_terminal(std::exchange(line_, {})));
    }
    return any;
  }
  void end(Lines& lines) override {
    if (!line_.empty()) lines.add(core::escape_for_terminal(std::exchange(line_, {})));
  }

 private:
  std::ifstream file_;
  std::string line_;
};

std::unique_ptr<Source> open_log(const RunSummary& run, std::int64_t rank, core::Diagnostics& diagnostics) {
  const std::string folder = run.run_dir + "/logs";
  const std::string name = "rank-" + std::to_string(rank) + ".log";
  const auto there = core::list_folder(folder);
  if (const auto fits = core::check_is_file(folder + "/" + name); !fits) {
    diagnostics.error({}, fits.failure().message, fits.failure().hint);
    return nullptr;
  }
  if (there && std::find(there.value().begin(), there.value().end(), name) != there.value().end()) {
    return std::make_unique<Log>(folder + "/" + name);
  }
  const std::string list = core::joined(there.value_or({}));
  diagnostics.error({}, folder + " has no " + name,
                    list.empty() ? "the run keeps no logs of its processes" : "it has " + list);
  return nullptr;
}

/// Read before the lines: what is written after this is the next round's.
bool has_ended(RunSummary& run, const core::Clock& clock) {
  RunSummary now = store::read_run(run.run_dir);
  store::settle_status(now, clock);
  run.status = now.status;
  run.reason = now.reason;
  return !now.owner;
}

}  // namespace

void runs_tail(const RunsContext& context, const RunsTailRequest& request,
               const std::function<void(const std::string&)>& write, trackers::Waiter& waiter,
               core::Diagnostics& diagnostics) {
  auto run = find_run(context, request.run, diagnostics);
  if (!run) return;
  std::unique_ptr<Source> source;
  if (request.rank >= 0) {
    source = open_log(*run, request.rank, diagnostics);
  } else {
    source = std::make_unique<Metrics>(run->run_dir, request.metrics);
  }
  if (!source) return;
  Lines lines(static_cast<std::size_t>(request.lines), write);
  while (true) {
    const bool ended = has_ended(*run, context.clock);
    while (source->read(lines)) {
    }
    if (ended) break;
    lines.flow();
    if (!waiter.wait(kPollMs)) return;
  }
  source->end(lines);
  lines.flow();
  source.reset();
  store::checkpoint_wal(run->run_dir);
  write(status_cell(*run).text + (run->reason.empty() ? "" : ": " + core::escape_for_terminal(run->reason)) + "\n");
}

}  // namespace runner::review
