#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "runner/cli/flags.h"
#include "runner/core/text/utf8.h"
#include "runner/review/checkpoint/checkpoints.h"
#include "runner/review/checkpoint/tensor_diff.h"

namespace runner::cli {
namespace {

struct Request {
  std::string a, b, format = "text";
  bool all = false;
};

std::optional<std::string> path_of(const std::string& text, Session& session) {
  std::vector<std::string> skipped;
  auto found = artifact::find_checkpoint(text, review::run_finder(session.runs_dir()), skipped);
  for (const std::string& line : skipped) std::fprintf(stderr, "skipped %s\n", core::escape_for_terminal(line).c_str());
  if (found) return std::move(found).value();
  session.fail(found.failure().message, found.failure().hint);
  return std::nullopt;
}

void diff(const Request& request, Session& session) {
  const auto a = path_of(request.a, session);
  const auto b = path_of(request.b, session);
  if (!a || !b) return;
  const auto comparison = artifact::compare_checkpoints(*a, *b);
  // As with diff(1), 1 means that they differ and 2 is an error.
  if (!comparison) return session.fail(comparison.failure().message, comparison.failure().hint);
  review::DiffOptions options{*a, *b};
  if (request.all) options.rows_max = std::numeric_limits<std::size_t>::max();
  const std::string text = request.format == "json" ? review::diff_json(comparison.value(), options)
                                                    : review::diff_text(comparison.value(), options,
                                                                        terminal::Terminal::of_stdout(session.color));
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!comparison.value().same()) session.exit_code = core::kExitFailed;
}

}  // namespace

void add_checkpoints_diff(Command group, Session& session) {
  const auto request = std::make_shared<Request>();
  Command command = group.add_subcommand("diff", "Show which tensors of two checkpoints differ, and by how much");
  const char* what = "Checkpoint: folder, RUN:best, RUN:last, RUN:step-000500, or a safetensors file";
  command.add_option("A", request->a, what).required();
  command.add_option("B", request->b, what).required();
  command.add_flag("--all", request->all, "Show every row");
  add_format(command, request->format, {"text", "json"});
  command.footer(
      "\nExit status: 0 if all state that affects training is bit-identical, 1 if it differs, 2 if it cannot be "
      "compared.\n"
      "\nExamples:\n"
      "  roux checkpoints diff tiny-gpt:step-000200 tiny-gpt:last\n"
      "  roux checkpoints diff runs/a-1b2c/checkpoints/step-000100 runs/a-3d4e/checkpoints/step-000100 --format "
      "json\n");
  command.callback([request, &session] { session.command = [request, &session] { diff(*request, session); }; });
}

}  // namespace runner::cli
