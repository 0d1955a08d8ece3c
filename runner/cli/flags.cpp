#include "runner/cli/flags.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

#include <algorithm>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

/// The description of a check that holds the known values, as CLI::IsMember has it: part of the option's type name.
std::string member_text(const std::vector<std::string>& known) { return "{" + core::joined(known, ",") + "}"; }

}  // namespace

std::string recipe_text(const std::string& text) {
  std::string quoted = core::json_quote(text);
  for (std::size_t at = 0; (at = quoted.find("${", at)) != std::string::npos; at += 3) quoted.insert(at, "$");
  return quoted;
}

Option accept_only(Option option, const std::vector<std::string>& known) {
  const std::string one_of = (known.size() > 1 ? "one of " : "") + core::joined(known);
  const auto check = [known, one_of](const std::string& value) {
    const bool is_known = std::find(known.begin(), known.end(), value) != known.end();
    return is_known ? std::string() : "must be " + one_of + ", got \"" + value + "\"";
  };
  return option.check(check, member_text(known));
}

Option offer(Option option, const std::vector<std::string>& known) {
  return option.check([](const std::string&) { return std::string(); }, member_text(known));
}

std::vector<std::string> offered(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{"), end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 2, end - begin - 2), ',');
}

Option add_format(Command command, std::string& format, const std::vector<std::string>& known) {
  Option option = command.add_option("--format", format, "Output format: " + core::joined(known));
  return accept_only(option.type_name("FORMAT"), known);
}

void read_table_as_text(Option format, const Session& session) {
  format.transform([&session](const std::string& word) {
    if (word != "table") return word;
    notice_old_flag(session, "--format table", "--format text");
    return std::string("text");
  });
}

void add_output(Command command, std::string& file, const char* what) {
  command.add_option("--output,-o", file, what).type_name("FILE");
}

void notice_old_flag(const Session& session, const std::string& old_name, const std::string& new_name) {
  core::Diagnostics diagnostics;
  diagnostics.notice({}, old_name + " is read as " + new_name);
  session.show(diagnostics);
}

void add_old_json(Command command, std::string& format, Session& session) {
  const auto read = [&format, &session] {
    format = "json";
    notice_old_flag(session, "--json", "--format json");
  };
  command.add_flag_callback("--json", read).group("");
}

void add_picture_flags(Command command, review::PictureRequest& request) {
  command.add_option("--svg", request.svg, "Write an SVG file").type_name("FILE");
  command.add_option("--png", request.png, "Write a PNG file").type_name("FILE");
  command.add_option("--width", request.width, "Width in columns, or in pixels of a file")
      .type_name("N")
      .in_range(20, 4000);
  command.add_option("--height", request.height, "Height in lines, or in pixels of a file")
      .type_name("N")
      .in_range(5, 4000);
}

void add_yes(Command command, bool& yes) { command.add_flag("--yes,-y", yes, "Do not ask for confirmation"); }

}  // namespace runner::cli
