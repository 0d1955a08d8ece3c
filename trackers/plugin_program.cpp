#include "trackers/plugin_program.h"

#include <optional>
#include <utility>

#include "runner/core/log.h"
#include "runner/core/process.h"
#include "trackers/json_lines.h"

namespace trackers {
namespace {

using json_lines::line;
using runner::core::Node;
using runner::core::Process;
using Remedy = TrackerError::Remedy;

class Program final : public Tracker {
 public:
  explicit Program(PluginProgram program) : program_(std::move(program)) {}

  // One that still runs from before a failure is ended: it has been told what comes once more.
  void start(const Run& run, const Node& state) override {
    flushes_ = state.is_integer() ? state.as_integer() : 0;
    process_.reset();
    try {
      process_.emplace(program_.command, std::map<std::string, std::string>{}, Process::Fate::kDiesWithParent,
                       Process::Input::kPipe);
    } catch (const runner::core::RunError& error) {
      throw TrackerError(Remedy::kPause, error.what());
    }
    tell(R"({"type":"options","resumed":)" + std::string(flushes_ > 0 ? "true" : "false") + R"(,"options":)" +
         program_.options + "}\n");
    tell(json_lines::start(run));
  }

  void rewind(std::int64_t step) override { tell(json_lines::rewind(step)); }
  void log(std::span<const Point> points) override {
    std::string lines;
    for (const Point& point : points) lines += line(point);
    tell(lines);
  }
  void log_text(const Text& text) override { tell(line(text)); }
  void log_histogram(const Histogram& histogram) override { tell(line(histogram)); }
  void log_image(const Image& image) override { tell(line(image)); }
  void log_table(const Table& table) override { tell(line(table)); }
  void log_artifact(const Artifact& artifact) override { tell(line(artifact)); }

  void flush(bool) override {
    ++flushes_;
    tell(R"({"type":"flush","number":)" + std::to_string(flushes_) + "}\n");
    if (program_.acknowledges) wait_for("flushed " + std::to_string(flushes_));
    for (std::string said; process_->read_line(said, 0) == Process::Read::kLine;) hear(said);
  }

  Node state() const override { return Node::integer(flushes_); }

  void finish(const End& end) override {
    if (end.ending != Ending::kOpen) tell(line(end));
    process_->close_input();
    for (std::string said;;) {
      const auto read = process_->read_line(said, program_.answer_timeout_ms);
      if (read == Process::Read::kTimeout) throw silent("does not leave");
      if (read == Process::Read::kEnd) break;
      hear(said);
    }
    if (const int status = process_->wait(); status != 0) throw left(status);
    process_.reset();
  }

 private:
  void tell(const std::string& lines) {
    switch (process_->write(lines, program_.answer_timeout_ms)) {
      case Process::Write::kDone: return;
      case Process::Write::kTimeout: throw silent("does not read");
      case Process::Write::kClosed: break;
    }
    for (std::string said; process_->read_line(said, program_.answer_timeout_ms) == Process::Read::kLine;) hear(said);
    throw left(process_->wait());
  }

  void wait_for(const std::string& answer) {
    for (std::string said;;) {
      const auto read = process_->read_line(said, program_.answer_timeout_ms);
      if (read == Process::Read::kTimeout) throw silent("does not answer a flush");
      if (read == Process::Read::kEnd) throw left(process_->wait());
      if (said == answer) return;
      hear(said);
    }
  }

  void hear(const std::string& said) const {
    if (!program_.acknowledges || !said.starts_with("flushed ")) {
      runner::core::log_warning(program_.command.front() + ": " + said);
    }
  }

  TrackerError silent(const char* what) const {
    return {Remedy::kTryAgain, program_.command.front() + " " + what + " within answer_timeout"};
  }

  TrackerError left(int status) const {
    return {status == 127 ? Remedy::kPause : Remedy::kTryAgain,
            program_.command.front() + " has left with status " + std::to_string(status),
            status == 127 ? "is there such a program?" : ""};
  }

  const PluginProgram program_;
  std::optional<Process> process_;
  std::int64_t flushes_ = 0;
};

}  // namespace

std::unique_ptr<Tracker> start_plugin_program(const PluginProgram& program) {
  return std::make_unique<Program>(program);
}

}  // namespace trackers
