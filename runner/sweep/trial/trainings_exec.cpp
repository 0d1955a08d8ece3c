#include <iterator>
#include <map>
#include <utility>

#include "runner/launch/exit_message.h"
#include "runner/launch/rank_process.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::sweep {
namespace {

using launch::RankProcess;

constexpr int kNotStarted = 127;  // of exec(), and of a loader that misses a library: the program is another by now

class ByExec final : public Trainings {
 public:
  explicit ByExec(std::string program) : program_(std::move(program)) {}

  void start(std::int64_t trial, Training training) override {
    std::vector<std::string> command = {program_};
    command.insert(command.end(), training.words.begin(), training.words.end());
    RankProcess::Options options;
    options.output = RankProcess::Output::kKept;
    processes_[trial] = std::make_unique<RankProcess>("trial " + std::to_string(trial), command, options);
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
      at = processes_.erase(at);
    }
    return list;
  }

 private:
  std::string program_;
  std::map<std::int64_t, std::unique_ptr<RankProcess>> processes_;
};

}  // namespace

std::unique_ptr<Trainings> trainings_by_exec(std::string program) {
  return std::make_unique<ByExec>(std::move(program));
}

}  // namespace runner::sweep
