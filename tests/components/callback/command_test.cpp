#include <catch2/catch.hpp>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/components/callback/fake_run.h"

using components::callback::Program;
using tests::build_callback;
using tests::FakeRun;

namespace {

/// `save 6 | NAME=VALUE ...`, in the order of the names.
std::string text_of(const Program& program) {
  std::string text = program.event + " " + std::to_string(program.step) + " |";
  for (const auto& [name, value] : program.variables) text += " " + name + "=" + value;
  return text;
}

std::vector<std::string> texts_of(const FakeRun& run) {
  std::vector<std::string> texts;
  for (const Program& program : run.programs_) texts.push_back(text_of(program));
  return texts;
}

}  // namespace

TEST_CASE("a command is told what happened, at which step and with which values", "[callback][command]") {
  const auto callback =
      build_callback("{type: command, on: [save, load, evaluation, end], run: [./a.sh, b c], timeout: 2min}").callback;
  const std::string folder = std::filesystem::current_path().string();
  FakeRun run;
  run.step_ = 4;
  run.epoch_ = 0.5;
  callback->on_load(run, "runs/x/checkpoints/step-000004");
  run.step_ = 6;
  run.metrics_ = {{"val/loss", 0.25}, {"val/accuracy", std::numeric_limits<double>::quiet_NaN()}};
  callback->on_eval_end(run);
  run.step_ = 9;
  callback->on_save(run, {"/tmp/step-000006", 6, 0.75, {{"val/loss", 0.25}}});
  run.metrics_.clear();
  callback->on_train_end(run);
  CHECK(texts_of(run) ==
        std::vector<std::string>{"load 4 | ROUX_CHECKPOINT=" + folder +
                                     "/runs/x/checkpoints/step-000004 ROUX_EPOCH=0.5 ROUX_EVENT=load "
                                     "ROUX_STEP=4",
                                 R"(evaluation 6 | ROUX_EPOCH=0.5 ROUX_EVENT=evaluation )"
                                 R"(ROUX_METRICS={"val/accuracy": "nan", "val/loss": 0.25} ROUX_STEP=6)",
                                 R"(save 6 | ROUX_CHECKPOINT=/tmp/step-000006 ROUX_EPOCH=0.75 ROUX_EVENT=save )"
                                 R"(ROUX_METRICS={"val/loss": 0.25} ROUX_STEP=6)",
                                 "end 9 | ROUX_CHECKPOINT=/tmp/step-000006 ROUX_EPOCH=0.5 ROUX_EVENT=end ROUX_STEP=9"});
  CHECK(run.programs_[0].command == std::vector<std::string>{"./a.sh", "b c"});
  CHECK(run.programs_[0].timeout_s == 120);
  CHECK_FALSE(run.programs_[0].is_last);
  CHECK(run.programs_[3].is_last);
}

TEST_CASE("a command starts for the events that it names alone", "[callback][command]") {
  const auto callback = build_callback("{type: command, on: end, run: [a]}").callback;
  FakeRun run;
  callback->on_load(run, "step-000004");
  callback->on_eval_end(run);
  callback->on_save(run, {"step-000006", 6, 1, {}});
  run.epoch_ = 3;
  CHECK_FALSE(callback->acts_on_step(run));
  CHECK(texts_of(run).empty());
  callback->on_train_end(run);
  CHECK(texts_of(run).size() == 1);
}

TEST_CASE("a command starts once at the end of each epoch, and a resume repeats none", "[callback][command]") {
  // Three steps an epoch: the sum of thirds misses whole numbers.
  const auto epochs_from = [](std::int64_t first, std::int64_t last) {
    const auto callback = build_callback("{type: command, on: epoch, run: [a]}").callback;
    FakeRun run;
    run.step_ = first;
    run.epoch_ = static_cast<double>(first) / 3;
    if (first > 0) callback->on_load(run, "step");
    for (std::int64_t step = first + 1; step <= last; ++step) {
      run.step_ = step;
      run.epoch_ += 1.0 / 3;
      if (callback->acts_on_step(run)) callback->on_step_end(run);
    }
    std::vector<std::int64_t> steps;
    for (const Program& program : run.programs_) steps.push_back(program.step);
    return steps;
  };
  CHECK(epochs_from(0, 10) == std::vector<std::int64_t>{3, 6, 9});
  CHECK(epochs_from(4, 10) == std::vector<std::int64_t>{6, 9});
  CHECK(epochs_from(6, 10) == std::vector<std::int64_t>{9});  // saved after the epoch was told
}

TEST_CASE("a command that cannot be started as it is written is refused", "[callback][command]") {
  CHECK(build_callback(R"({type: command, on: end, run: [""]})").messages ==
        "callback.yaml:1:32: error: run names no program: its first text is empty\n"
        "  hint: write the program first, such as run: [./script.sh]\n");
  CHECK(build_callback("{type: command, on: [save, evaluation], run: [a]}", {}, {"loss"}).messages ==
        "callback.yaml:1:1: error: command on evaluation needs an evaluated data set, but train is the only data set\n"
        "  hint: add a data set, such as data.val\n");
}
