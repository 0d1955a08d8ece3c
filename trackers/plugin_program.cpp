#include "trackers/plugin_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/platform/child_log.h"
#include "runner/core/platform/process.h"
#include "trackers/io/json_lines.h"

namespace trackers {
namespace {

using json_lines::line;
using runner::core::Node;
using runner::core::Process;
using Remedy = TrackerError::Remedy;

constexpr std::size_t kLinesMax = 200;  // of its error output

/// Answered once, however many lines came before.
class Deadline {
 public:
  explicit Deadline(std::int64_t ms) : end_ns_(now_ns() + ms * 1'000'000) {}
  std::int64_t left_ms() const { return std::max<std::int64_t>(0, (end_ns_ - now_ns()) / 1'000'000); }
  bool is_over() const { return now_ns() >= end_ns_; }

 private:
  static std::int64_t now_ns() { return runner::core::system_clock().monotonic_ns(); }
  std::int64_t end_ns_;
};

class Program final : public Tracker {
 public:
  explicit Program(PluginProgram program) : program_(std::move(program)), relay_(program_.command.front(), kLinesMax) {}

  // Kills one that still runs from before a failure: it has already received what is repeated now.
  void start(const Run& run, const Node& state) override {
    flushes_ = state.is_integer() ? state.as_integer() : 0;
    process_.reset();
    try {
      process_.emplace(program_.command, std::map<std::string, std::string>{}, Process::Lifetime::kDiesWithParent,
                       Process::Input::kPipe);
    } catch (const runner::core::RunError& error) {
      throw TrackerError(Remedy::kPause, error.what());
    }
    send(R"({"type":"options","resumed":)" + std::string(flushes_ > 0 ? "true" : "false") + R"(,"options":)" +
         program_.options + "}\n");
    send(json_lines::start(run));
  }

  void rewind(std::int64_t step) override { send(json_lines::rewind(step)); }
  void log(std::span<const Point> points) override {
    std::string lines;
    for (const Point& point : points) lines += line(point);
    send(lines);
  }
  void log_text(const Text& text) override { send(line(text)); }
  void log_histogram(const Histogram& histogram) override { send(line(histogram)); }
  void log_image(const Image& image) override { send(line(image)); }
  void log_table(const Table& table) override { send(line(table)); }
  void log_artifact(const Artifact& artifact) override { send(line(artifact)); }

  void flush(bool) override {
    ++flushes_;
    send(R"({"type":"flush","number":)" + std::to_string(flushes_) + "}\n");
    if (program_.acknowledges) wait_for("flushed " + std::to_string(flushes_));
    for (std::size_t lines = 0; lines < kLinesMax && read(0) == Process::Read::kLine; ++lines) receive();
  }

  Node state() const override { return Node::integer(flushes_); }

  void finish(const End& end) override {
    if (end.ending != Ending::kOpen) send(line(end));
    process_->close_input();
    const std::optional<int> status = last_status();
    if (!status) throw silent("does not exit");
    if (*status != 0) throw left(*status);
    process_.reset();
  }

 private:
  void send(const std::string& lines) {
    switch (process_->write(lines, program_.answer_timeout_ms)) {
      case Process::Write::kDone: return;
      case Process::Write::kTimeout: throw silent("does not read");
      case Process::Write::kClosed: throw gone("stopped reading, but does not exit");
    }
  }

  void wait_for(const std::string& answer) {
    const Deadline deadline(program_.answer_timeout_ms);
    while (!deadline.is_over()) {
      const auto said = read(deadline.left_ms());
      if (said == Process::Read::kTimeout) break;
      if (said == Process::Read::kEnd) throw gone("does not answer a flush, and does not exit");
      if (said_ == answer) return;
      receive();
    }
    throw silent("does not answer a flush");
  }

  Process::Read read(std::int64_t timeout_ms) {
    return process_->read_line(said_, timeout_ms, runner::core::ChildLog::kLineBytesMax);
  }

  void receive() {
    if (!program_.acknowledges || !said_.starts_with("flushed ")) relay_.say(said_);
  }

  /// The exit status after its last output; nothing if it does not end.
  std::optional<int> last_status() {
    const Deadline deadline(program_.answer_timeout_ms);
    while (!deadline.is_over()) {
      const auto said = read(deadline.left_ms());
      if (said == Process::Read::kTimeout) break;
      if (said == Process::Read::kEnd) return process_->wait_for(deadline.left_ms());
      receive();
    }
    return std::nullopt;
  }

  /// `otherwise`: the error if it has not ended.
  TrackerError gone(const char* otherwise) {
    const std::optional<int> status = last_status();
    return status ? left(*status) : silent(otherwise);
  }

  TrackerError silent(const char* what) const {
    return {Remedy::kRetry, program_.command.front() + " " + what + " within answer_timeout"};
  }

  TrackerError left(int status) const {
    return {status == 127 ? Remedy::kPause : Remedy::kRetry,
            program_.command.front() + " exited with status " + std::to_string(status),
            status == 127 ? "check that the program exists" : ""};
  }

  const PluginProgram program_;
  std::optional<Process> process_;
  std::string said_;  // the line that was read last
  runner::core::ChildLog relay_;
  std::int64_t flushes_ = 0;
};

}  // namespace

std::unique_ptr<Tracker> start_plugin_program(const PluginProgram& program) {
  return std::make_unique<Program>(program);
}

}  // namespace trackers
