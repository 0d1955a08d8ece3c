#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "runner/cli/commands.h"
#include "runner/cli/data/view_text.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/flags.h"
#include "runner/core/error.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

constexpr std::int64_t kSamplesMax = 10'000;
constexpr int kWidthMin = 20, kWidthMax = 10'000, kWidth = 100;

struct ShowFlags {
  RecipeFlags recipe;
  engine::DataRequest request;
  std::optional<std::int64_t> index;
  std::int64_t first = 3;
  int width = 0;  ///< 0: not given
  bool ids = false;
  std::string format = "text";
};

ViewStyle style_of(const ShowFlags& flags) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  ViewStyle style{terminal::Terminal::of_stdout(color), kWidth, flags.ids};
  if (style.terminal.width > 0) style.width = static_cast<std::size_t>(std::max(kWidthMin, style.terminal.width));
  if (flags.width > 0) style.width = static_cast<std::size_t>(flags.width);
  return style;
}

void show(Session& session, ShowFlags& flags) {
  session.hub = HubUse::kSettings;
  auto options = session.changes(flags.recipe);
  if (!options) return;
  options->use = recipe::Use{flags.request.data};
  const auto recipe = session.load(flags.recipe.path, *options);
  if (!recipe) return;
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  flags.request.first = flags.index.value_or(0);
  flags.request.count = flags.index ? 1 : flags.first;
  core::Diagnostics diagnostics;
  const auto view = engine->view_data(*recipe, flags.request, diagnostics);
  session.show(diagnostics);
  if (!view) {
    session.exit_code = core::kExitUsage;
    return;
  }
  const std::string text = flags.format == "json" ? view_json(*view) : view_text(*view, style_of(flags));
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void add_data_show(Command group, Session& session) {
  const auto flags = std::make_shared<ShowFlags>();
  Command command = group.add_subcommand("show", "Show samples as the model gets them, and what of them is learnt");
  add_recipe_flags(command, flags->recipe);
  command.add_option("--data", flags->request.data, "Data set of the recipe; train by default").type_name("SET");
  Option index = command.add_option("--index", flags->index, "Show this sample, counted from 0").type_name("N");
  index.in_range<std::int64_t>(0, INT64_MAX);
  command.add_option("--first", flags->first, "Number of samples to show, from the first on; 3 by default")
      .type_name("N")
      .in_range<std::int64_t>(1, kSamplesMax)
      .excludes(index);
  command.add_flag("--shuffled", flags->request.shuffled, "Count samples in the order of the first epoch");
  command.add_flag("--ids", flags->ids, "Show a table of ids and targets instead of text");
  command.add_option("--width", flags->width, "Columns of a line; the terminal's, or 100, by default")
      .type_name("N")
      .in_range(kWidthMin, kWidthMax);
  add_format(command, flags->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux data show recipe.yaml\n"
      "  roux data show recipe.yaml --data val --index 17 --ids\n\n"
      "On a terminal learnt tokens are green. Elsewhere `^` below the text marks them, unless all are learnt. A "
      "target\n"
      "of -100 in JSON has no part in the loss.");
  command.callback([&session, flags] { session.command = [&session, flags] { show(session, *flags); }; });
}

}  // namespace runner::cli
