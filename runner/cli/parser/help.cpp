#include "runner/cli/parser/help.h"

#include <utility>
#include <vector>

#include "runner/core/text/text.h"

namespace runner::cli {
namespace {

std::string metavar(const CLI::Option& option) {
  std::string name = option.get_type_name();
  name = name.substr(0, name.find(':'));  // what follows describes the check
  for (const char* of_library : {"TEXT", "INT", "UINT", "FLOAT", "ENUM", "BOOLEAN"}) {
    if (name == of_library) return option.get_positional() ? "" : "VALUE";
  }
  return name;
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return CLI::detail::find_and_replace(Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n\n");
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  if (is_positional) return Formatter::make_option_name(option, is_positional);
  std::vector<std::string> names;
  for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  for (const std::string& name : option->get_lnames()) {
    if (name.find('_') == std::string::npos) names.push_back("--" + name);
  }
  return core::joined(names);
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  const std::string name = metavar(*option);
  const bool repeats = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  return (name.empty() ? "" : " " + name) + (repeats ? " ..." : "");
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::string footer = app->get_footer();
  footer.erase(0, footer.find_first_not_of('\n'));
  while (footer.ends_with('\n')) footer.pop_back();
  return footer.empty() ? "" : footer + "\n";
}

}  // namespace runner::cli
