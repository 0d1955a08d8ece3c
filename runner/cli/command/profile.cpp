#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/cli/group/runs.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/review/runs.h"
#include "runner/review/terminal_plot.h"
#include "runner/store/profile/profile.h"

namespace runner::cli {
namespace {

using store::Profile;

const std::vector<std::string>& sort_words() {
  static const std::vector<std::string> words = {"self_cpu_time_total",
                                                 "cpu_time_total",
                                                 "cpu_time",
                                                 "self_cuda_time_total",
                                                 "cuda_time_total",
                                                 "cuda_time",
                                                 "self_cpu_memory_usage",
                                                 "cpu_memory_usage",
                                                 "self_cuda_memory_usage",
                                                 "cuda_memory_usage",
                                                 "flops",
                                                 "count"};
  return words;
}

struct ProfileRequest {
  std::string run = "";
  std::optional<std::string> sort_by = {};
  std::optional<std::int64_t> row_limit = {};
  bool group_by_input_shape = false;
  std::int64_t cycle = 0;  ///< counted from 1; 0: the last
  std::string format = "text";
};

/// The files of a run's profiles, oldest first: in its folder, otherwise where its events say.
std::vector<std::string> profile_files(const store::RunSummary& run) {
  std::vector<std::string> files;
  const auto events = store::read_events(run.run_dir);
  if (!events) return files;
  for (const store::EventRow& event : events.value()) {
    const core::Node* path = event.kind == "profile" ? event.data.find("key_averages") : nullptr;
    if (path == nullptr || !path->is_string()) continue;
    const std::string name = std::filesystem::path(path->as_string()).filename().string();
    const std::string own = run.run_dir + "/profile/" + name;
    std::error_code ignored;
    files.push_back(std::filesystem::exists(own, ignored) ? own : path->as_string());
  }
  return files;
}

std::string memory_plot(const Profile& profile, const terminal::Terminal& terminal) {
  if (profile.memory.empty()) return "";
  chart::Curve curve{"memory", {}};
  for (const store::MemoryPoint& point : profile.memory) {
    curve.points.emplace_back(point.ms, static_cast<double>(point.bytes) / 1048576.0);
  }
  review::PlotOptions options = review::plot_options(terminal);
  options.x_title = "ms since the recording began";
  const std::string where = profile.with_cuda ? " on the GPU" : "";
  return "\nMiB of tensors" + where + ", relative to the start of the recording\n" +
         review::plot_text({curve}, options, terminal);
}

struct FoundProfiles {
  std::vector<std::string> files;  ///< oldest first; at least one
  std::string title;
  std::string owner;  ///< for messages: `run RUN_ID`
};

/// `word`: a run, or the table that a profile wrote, of `eval` and `predict` too.
std::optional<FoundProfiles> find_profiles(const review::RunsContext& context, const std::string& word,
                                           core::Diagnostics& diagnostics) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(word, ignored))
    return FoundProfiles{{word}, core::escape_for_terminal(word), word};
  const auto run = store::find_run(context.output_dir, word, context.clock);
  if (!run) {
    diagnostics.error({}, run.failure().message, run.failure().hint);
    return std::nullopt;
  }
  FoundProfiles found = {profile_files(run.value()), core::escape_for_terminal(run.value().name) + " " + run.value().id,
                         "run " + run.value().id};
  if (!found.files.empty()) return found;
  diagnostics.error({}, found.owner + " has no profile",
                    "train with --set 'profiler.activities=[cpu]'; see `roux explain section/profiler`");
  return std::nullopt;
}

std::optional<std::string> show(const review::RunsContext& context, const ProfileRequest& request,
                                core::Diagnostics& diagnostics) {
  const auto found = find_profiles(context, request.run, diagnostics);
  if (!found) return std::nullopt;
  const std::vector<std::string>& files = found->files;
  const auto count = static_cast<std::int64_t>(files.size());
  if (request.cycle > count) {
    diagnostics.error({}, found->owner + " has no cycle " + std::to_string(request.cycle),
                      "cycles are 1 to " + std::to_string(count));
    return std::nullopt;
  }
  const std::int64_t cycle = request.cycle > 0 ? request.cycle : count;
  const auto profile = store::read_profile(files[static_cast<std::size_t>(cycle - 1)]);
  if (!profile) {
    diagnostics.error({}, profile.failure().message, profile.failure().hint);
    return std::nullopt;
  }
  if (request.format == "json") return core::to_json(store::to_node(profile.value())) + "\n";
  if (request.group_by_input_shape && !profile.value().with_shapes) {
    diagnostics.error({}, "--group-by-input-shape needs shapes, but the run recorded none",
                      "train with --set profiler.record_shapes=true");
    return std::nullopt;
  }
  store::ProfileTable table = profile.value().table;
  if (std::find(sort_words().begin(), sort_words().end(), table.sort_by) == sort_words().end()) {
    table.sort_by = sort_words().front();  // a file of another version
  }
  if (request.sort_by) table.sort_by = *request.sort_by;
  if (request.sort_by && request.sort_by->find("cuda") != std::string::npos && !profile.value().with_cuda) {
    diagnostics.error({}, "--sort-by " + table.sort_by + " needs a profile of a GPU, but the run recorded only the CPU",
                      "train on a GPU with --set 'profiler.activities=[cpu, cuda]'");
    return std::nullopt;
  }
  if (request.row_limit) table.row_limit = *request.row_limit;
  if (request.group_by_input_shape) table.group_by_input_shape = true;
  std::string text = found->title;
  if (count > 1) text += ", cycle " + std::to_string(cycle) + " of " + std::to_string(count);
  return text + ": " + store::profile_text(profile.value(), table) + memory_plot(profile.value(), context.terminal);
}

bool is_count(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

void add_show(Command profile, Session& session) {
  const auto request = std::make_shared<ProfileRequest>();
  Command command = profile.add_subcommand("show", "Show the time and memory of each operation");
  command.add_option("RUN", request->run, std::string(kRunText) + "; or a .key_averages.json file").required();
  Option sort_by =
      command.add_option("--sort-by", request->sort_by, "Sort by: " + core::joined(sort_words())).type_name("WORD");
  accept_only(sort_by, sort_words());
  command.add_option("--row-limit", request->row_limit, "Maximum number of rows; -1 for all")
      .type_name("N")
      .check([](const std::string& text) {
        return text == "-1" || is_count(text) ? std::string() : "must be a number of rows or -1, got \"" + text + "\"";
      });
  command.add_flag("--group-by-input-shape", request->group_by_input_shape,
                   "Show one row for each operation and shape of its inputs");
  command.add_option("--cycle", request->cycle, "Cycle of the schedule, from 1; the last by default")
      .type_name("N")
      .check([](const std::string& text) {
        return is_count(text) && text != "0" ? std::string() : "must be 1 or more, got \"" + text + "\"";
      });
  add_format(command, request->format, {"text", "json"});
  add_old_json(command, request->format, session);
  command.footer(
      "\nExamples:\n"
      "  roux profile show last\n"
      "  roux profile show tiny-gpt --sort-by cpu_time_total --row-limit 10\n"
      "  roux profile show tiny-gpt --group-by-input-shape\n"
      "  roux profile show traces/rank-0.1763942400000000000.key_averages.json\n");
  command.fallthrough();
  command.callback([request, &session] {
    session.command = [request, &session] {
      core::Diagnostics diagnostics;
      const auto text = show(cli::runs_context(session), *request, diagnostics);
      session.show(diagnostics);
      if (text) std::fwrite(text->data(), 1, text->size(), stdout);
      if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
    };
  });
}

}  // namespace

void add_profile(Command app, Session& session) {
  Command profile = app.add_subcommand("profile", "Show what the profiler recorded");
  profile.footer(
      "\nExamples:\n"
      "  roux run recipe.yaml --set 'profiler.activities=[cpu]'\n"
      "  roux eval recipe.yaml --profile traces\n"
      "  roux profile show last\n");
  add_show(profile, session);
}

}  // namespace runner::cli
