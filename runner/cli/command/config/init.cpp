#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>

#include "runner/cli/group/config.h"
#include "runner/cli/launch_config.h"
#include "runner/core/error.h"
#include "runner/recipe/read.h"

namespace runner::cli {
namespace {

using core::Node;

/// The answer to a question, read as a value of a recipe; nothing if it is empty. Counts the lines that it reads.
std::optional<Node> ask(const std::string& question, int& lines) {
  std::printf("%s: ", question.c_str());
  std::fflush(stdout);
  std::string answer;
  if (!std::getline(std::cin, answer)) return std::nullopt;
  ++lines;
  if (answer.empty()) return std::nullopt;
  core::Diagnostics diagnostics;
  const auto source =
      std::make_shared<const core::Source>(core::Source{"the answer", answer, core::Source::Kind::kFlag});
  return recipe::read_value(source, answer, diagnostics);
}

void ask_all(Session& session, bool force) {
  const auto path = path_of_new(session, force);
  if (!path) return;
  Node launch = Node::mapping(), precision = Node::mapping(), parallelism = Node::mapping(), defaults = Node::mapping();
  int lines = 0;
  const auto take_into = [&lines](Node& section, const char* key, const std::string& question) {
    const auto answer = ask(question, lines);
    if (answer) section.set(key, *answer);
    if (answer.has_value() && answer->is_string() && answer->as_string() == "auto") return std::int64_t{2};  // or more
    return answer.has_value() && answer->is_integer() ? answer->as_integer() : 1;
  };
  const auto take = [&](const char* key, const std::string& question) { return take_into(launch, key, question); };
  std::printf("Press Enter to keep a default.\n");
  if (take("num_machines", "number of machines [1]") > 1) {
    take("machine_rank", "rank of this machine, from 0");
    take("main_process_ip", "address of machine 0");
    take("main_process_port", "port of machine 0 [29500]");
  }
  if (take("num_processes", "number of processes on all machines, or auto: one for each GPU [1]") > 1) {
    take("max_restarts", "number of restarts after a failure [0]");
    take_into(parallelism, "shard",
              "what processes divide, as ZeRO 1, 2 or 3: optimizer, gradients or parameters [nothing]");
  }
  take("num_cpu_threads_per_process", "number of CPU threads per process [cores divided by processes]");
  take_into(defaults, "device", "device: auto, cpu, cuda or cuda:N [auto]");
  take_into(precision, "mode", "precision: 32-true, bf16-mixed, 16-mixed or bf16-true [32-true]");
  std::printf("\n");
  if (lines == 0) {
    return session.fail("`roux config init` asks questions, but standard input is empty",
                        "`roux config default` writes the file with all keys commented out");
  }
  defaults.set("launch", launch);
  if (!precision.entries().empty()) defaults.set("precision", precision);
  if (!parallelism.entries().empty()) defaults.set("parallelism", parallelism);
  core::Diagnostics diagnostics;
  check_sections(defaults, diagnostics);
  session.show(diagnostics);
  if (diagnostics.has_errors()) return void(session.exit_code = core::kExitUsage);
  write_config(session, *path, launch_config_text(defaults));
}

}  // namespace

void add_config_init(Command group, Session& session) {
  Command command = group.add_subcommand("init", "Write the file from answers to a few questions");
  auto force = std::make_shared<bool>(false);
  command.add_flag("--force", *force, "Replace an existing file");
  command.footer("\nExample:\n  roux config init\n");
  command.callback([&session, force] { session.command = [&session, force] { ask_all(session, *force); }; });
}

}  // namespace runner::cli
