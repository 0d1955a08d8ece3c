// Writes a run as a training does, of what it is told on standard input: a JSON list a line. What a tracker made of the
// run is then read back by the tool itself and compared with run.db.
//
//   write_run new OUTPUT_DIR RUN_NAME RESOLVED_JSON      prints the run's folder
//   write_run resume RUN_DIR STEP BRANCH                 resumes from that step of that branch
//
//   ["log", STEP, {"loss": 0.5, "val/loss": "nan"}, CONTEXT]
//   ["event", KIND, STEP, {...}]           a text or a histogram
//   ["artefact", KIND, STEP, PATH, {...}]  a picture, a table, a file
//   ["go_back", STEP]
//   ["summary", {...}]
//   ["commit"]                             prints "committed" when all so far is on the disk
//   ["finish", "finished" | "failed" | "stopped", REASON]
//
// The end of the input without a finish leaves the run as a SIGKILL would.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/store/run_writer.h"

namespace {

using runner::core::Node;
using runner::store::RunStatus;
using runner::store::RunWriter;

constexpr std::int64_t kResolvedBytesMax = 10'000'000;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::unique_ptr<RunWriter> open_run(const std::vector<std::string>& words) {
  const runner::core::Clock& clock = runner::core::system_clock();
  if (words.size() == 4 && words[0] == "new") {
    runner::store::NewRun run;
    run.output_dir = words[1];
    run.run_name = words[2];
    run.resolved_json = runner::core::read_file(words[3], kResolvedBytesMax).value();
    run.command_line = {"roux", "run", "recipe.yaml"};
    return RunWriter::create(run, clock).value();
  }
  if (words.size() == 4 && words[0] == "resume") {
    return RunWriter::resume({words[1], std::stoll(words[2]), std::stoll(words[3])}, clock).value();
  }
  throw runner::core::RunError("write_run takes new OUTPUT_DIR RUN_NAME RESOLVED_JSON or resume RUN_DIR STEP BRANCH");
}

RunStatus status_of(const std::string& word) {
  for (const RunStatus status : {RunStatus::kFinished, RunStatus::kFailed, RunStatus::kStopped}) {
    if (word == runner::store::to_text(status)) return status;
  }
  throw runner::core::RunError("a run does not end as " + word);
}

/// JSON has no word for what is no number: "nan", "inf", "-inf".
double number_of(const Node& value) {
  return value.is_number() ? value.as_double() : std::strtod(value.as_string().c_str(), nullptr);
}

void log(RunWriter& run, std::int64_t step, const Node& values, const std::string& context) {
  std::vector<runner::store::MetricValue> row;
  for (const auto& entry : values.entries()) {
    row.push_back({run.metric(entry.key, context), number_of(entry.value)});
  }
  run.log(step, row);
}

void obey(RunWriter& run, const std::vector<Node>& words) {
  const std::string& order = words.at(0).as_string();
  if (order == "log") {
    log(run, words.at(1).as_integer(), words.at(2), words.at(3).as_string());
  } else if (order == "event") {
    run.event(words.at(1).as_string(), words.at(2).as_integer(), words.at(3));
  } else if (order == "artefact") {
    run.artefact(words.at(1).as_string(), words.at(2).as_integer(), words.at(3).as_string(), words.at(4));
  } else if (order == "go_back") {
    run.rewind(words.at(1).as_integer());
  } else if (order == "summary") {
    run.set_summary(words.at(1));
  } else if (order == "commit") {
    run.flush_durable();
    say("committed");
  } else if (order == "finish") {
    run.finish(status_of(words.at(1).as_string()), words.at(2).as_string());
    say("finished");
  } else {
    throw runner::core::RunError("nothing is called " + order);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::unique_ptr<RunWriter> run = open_run({argv + 1, argv + argc});
    say(std::filesystem::absolute(run->run_dir()).string());
    bool finished = false;
    for (std::string line; std::getline(std::cin, line);) {
      const Node order = runner::core::parse_json(line).value();
      obey(*run, order.items());
      finished = order.items().at(0).as_string() == "finish";
    }
    if (!finished) _exit(0);  // the destructor would end the run in good order
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_run: %s\n", error.what());
    return 1;
  }
}
