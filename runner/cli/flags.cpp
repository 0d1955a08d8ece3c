#include "runner/cli/flags.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "runner/core/text.h"

namespace runner::cli {

void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& known) {
  const std::string list = core::joined(known);
  command.add_option("--format", format, "Output format: " + list)
      ->type_name("FORMAT")
      ->check([known, list](const std::string& value) {
        for (const std::string& name : known) {
          if (value == name) return std::string();
        }
        return "must be one of " + list + ", got \"" + value + "\"";
      });
}

void add_output(CLI::App& command, std::string& file, const char* what) {
  command.add_option("--output,-o", file, what)->type_name("FILE");
}

void notice_old_flag(const Session& session, const std::string& old_name, const std::string& new_name) {
  core::Diagnostics diagnostics;
  diagnostics.notice({}, old_name + " is read as " + new_name);
  session.show(diagnostics);
}

void add_old_json(CLI::App& command, std::string& format, Session& session) {
  const auto read = [&format, &session] {
    format = "json";
    notice_old_flag(session, "--json", "--format json");
  };
  command.add_flag_callback("--json", read)->group("");
}

void add_yes(CLI::App& command, bool& yes) { command.add_flag("--yes,-y", yes, "Do not ask for confirmation"); }

}  // namespace runner::cli
