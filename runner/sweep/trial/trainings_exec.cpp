#include <iterator>
#include <map>
#include <utility>

#include "runner/core/error.h"
#include "runner/launch/exit_message.h"
#include "runner/launch/rank_process.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::sweep {
namespace {

using launch::RankProcess;

constexpr int kNotStarted = 127;  // of exec(), and of a loader that misses a library: the program is another by now

class ByExec final : public Trainings {
 public:
  ByExec(std::string program, GpuShares gpus) : program_(std::move(program)), gpus_(std::move(gpus)) {}

  void start(std::int64_t trial, Training training) override {
    std::vector<std::string> command = {program_};
    command.insert(command.end(), training.words.begin(), training.words.end());
    RankProcess::Options options;
    options.output = RankProcess::Output::kKept;
    if (std::string shared = gpus_.take(trial); !shared.empty()) {
      options.environment = {{"CUDA_VISIBLE_DEVICES", std::move(shared)}, {kGpusShared, "1"}};
    }
    try {
      processes_[trial] = std::make_unique<RankProcess>("trial " + std::to_string(trial), command, options);
    } catch (const core::RunError&) {
      gpus_.give_back(trial);
      throw;
    }
  }

  void send(std::int64_t trial, int signal) override {
    if (const auto found = processes_.find(trial); found != processes_.end()) found->second->send(signal);
  }

  std::vector<int> descriptors() const override {
    std::vector<int> list;
    for (const auto& [trial, process] : processes_) {
      const std::vector<int> outputs = process->outputs();
      list.insert(list.end(), outputs.begin(), outputs.end());
    }
    return list;
  }

  std::vector<End> take_ended() override {
    std::vector<End> list;
    for (auto at = processes_.begin(); at != processes_.end();) {
      RankProcess& process = *at->second;
      process.read_output();
      if (!process.has_ended()) {
        ++at;
        continue;
      }
      list.push_back({at->first, process.status(), process.exit_message()});
      if (End& end = list.back(); end.status == kNotStarted)
        end.refusal = "cannot start " + program_ + ": " + launch::in_one_line(end.words);
      gpus_.give_back(at->first);
      at = processes_.erase(at);
    }
    return list;
  }

 private:
  std::string program_;
  GpuShares gpus_;
  std::map<std::int64_t, std::unique_ptr<RankProcess>> processes_;
};

}  // namespace

std::unique_ptr<Trainings> trainings_by_exec(std::string program, GpuShares gpus) {
  return std::make_unique<ByExec>(std::move(program), std::move(gpus));
}

}  // namespace runner::sweep
