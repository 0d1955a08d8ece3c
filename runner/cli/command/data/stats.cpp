#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "runner/cli/commands.h"
#include "runner/cli/data/progress_line.h"
#include "runner/cli/data/stats_text.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/flags.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

struct StatsFlags {
  RecipeFlags recipe;
  engine::DataRequest request;
  std::string format = "text";
};

void stats(Session& session, StatsFlags& flags) {
  session.hub = HubUse::kSettings;
  auto options = session.changes(flags.recipe);
  if (!options) return;
  options->use = recipe::Use{flags.request.data};
  const auto recipe = session.load(flags.recipe.path, *options);
  if (!recipe) return;
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  ProgressLine line(!session.quiet);
  flags.request.progress = [&line](std::int64_t done, std::int64_t all) {
    line.draw([&] {
      if (all == 0) return core::counted_large(done, "sample", "samples");
      return core::with_commas(done) + " of " + core::counted_large(all, "sample", "samples") + ", " +
             std::to_string(100 * done / std::max<std::int64_t>(1, all)) + " %";
    });
  };
  core::Diagnostics diagnostics;
  const auto found = engine->data_stats(*recipe, flags.request, diagnostics);
  line.clear();
  session.show(diagnostics);
  if (!found) {
    session.exit_code = core::kExitUsage;
    return;
  }
  const std::string text =
      flags.format == "json" ? stats_json(*found) : stats_text(*found, terminal::Terminal::of_stdout(false));
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void add_data_stats(Command group, Session& session) {
  const auto flags = std::make_shared<StatsFlags>();
  Command command = group.add_subcommand("stats", "Count tokens, targets, lengths and padding of a data set");
  add_recipe_flags(command, flags->recipe);
  command.add_option("--data", flags->request.data, "Data set of the recipe; train by default").type_name("SET");
  command.add_option("--first", flags->request.most, "Read only the first N samples of a stream, not a whole pass")
      .type_name("N")
      .positive();
  add_format(command, flags->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux data stats recipe.yaml\n"
      "  roux data stats recipe.yaml --data val --format json\n"
      "  roux data stats recipe.yaml --first 10000                # of a stream that is long");
  command.callback([&session, flags] { session.command = [&session, flags] { stats(session, *flags); }; });
}

}  // namespace runner::cli
