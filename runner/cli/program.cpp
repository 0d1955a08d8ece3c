#include "runner/cli/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/commands.h"
#include "runner/cli/complete.h"
#include "runner/cli/flag_errors.h"
#include "runner/cli/flags.h"
#include "runner/cli/parser/given_places.h"
#include "runner/cli/parser/help.h"
#include "runner/cli/train_recipe.h"
#include "runner/cli/training_signals.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

void add_global_flags(CLI::App& app, Session& session) {
  app.set_version_flag("--version", std::string("roux ") + ROUX_VERSION, "Print the version");
  app.add_flag("--quiet,-q", session.quiet, "Print only warnings and errors");
  app.add_flag("--verbose,-v", session.verbose, "Log in more detail");
  accept_only(
      Command(app).add_option("--log-format", session.log_format, "Format of the log: text, json").type_name("FORMAT"),
      {"text", "json"});
  app.add_option("--output-dir", session.output_dir,
                 "Folder of runs; by default ROUX_OUTPUT_DIR, the recipe's output_dir, or runs")
      ->type_name("DIR");
}

namespace {

/// `roux runs list --quiet` is `roux --quiet runs list`. A word behind a command is no other command: a run may be
/// called `chat`.
void take_global_flags_everywhere(CLI::App& app) {
  app.require_subcommand(0, 1);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->fallthrough();
    take_global_flags_everywhere(*command);
  }
}

void add_own_commands(CLI::App& app, Session& session) {
  if (session.host) {  // called many times a second
    session.command_line.at(1) == "resume" ? add_resume(Command(app), session) : add_run(Command(app), session);
  } else {
    add_commands(Command(app), session);
  }
  take_global_flags_everywhere(app);
}

void configure(Session& session) {
  const char* no_color = std::getenv("NO_COLOR");
  session.color = isatty(STDERR_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  if (!session.quiet && !session.verbose && session.log_format == "text" && !session.color)
    return;  // the default log options
  core::LogOptions options;
  const bool is_silent = session.host && session.host->errors != nullptr;
  options.level = is_silent         ? core::LogLevel::kError
                  : session.quiet   ? core::LogLevel::kWarning
                  : session.verbose ? core::LogLevel::kDebug
                                    : core::LogLevel::kInfo;
  options.format = session.log_format == "json" ? core::LogFormat::kJson : core::LogFormat::kText;
  options.color = session.color;
  core::configure_log(options);
}

int run(Session& session) {
  CLI::App app("Run machine-learning experiments from recipes.", "roux");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("--help,-h", "Print this help");
  app.footer(
      "\nExamples:\n"
      "  roux run recipes/quickstart.yaml\n"
      "  roux validate recipes/quickstart.yaml --set optimizer.lr=1e-3\n"
      "  roux explain optimizer/adamw\n");
  app.option_defaults()->always_capture_default(false);
  add_global_flags(app, session);
  add_own_commands(app, session);
  if (session.command_line.size() > 1 && session.command_line[1] == "complete") {
    // Internal, for completion scripts. Its words are an unfinished command line.
    const std::vector<std::string> words(session.command_line.begin() + 2, session.command_line.end());
    for (const std::string& word : completions(app, session, words)) std::printf("%s\n", word.c_str());
    return core::kExitDone;
  }
  std::vector<const char*> words;
  for (const std::string& word : session.command_line) words.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    configure(session);
    refuse(app, error, session);
    return session.exit_code;
  }
  configure(session);
  if (!session.command) {
    std::fputs(app.help().c_str(), stdout);  // of the innermost command
    return core::kExitDone;
  }
  check_given_places(app);
  session.command();
  return session.exit_code;
}

/// If a standard stream is closed (`>&-`), the next file to be opened gets its number, and output would go into that
/// file, such as a checkpoint. Opened for reading, so that printing still fails and is reported.
void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    if (open("/dev/null", O_RDONLY) != stream) return;  // the lowest free number, so this one
  }
}

/// Reports an unexpected exception as a bug in roux.
int internal_error(Session& session, const char* what) {
  session.fail(std::string("bug in roux: ") + what, "please report this line and the command",
               core::kExitInternalError);
  return core::kExitInternalError;
}

int run_program(Session& session, const std::function<int()>& work) {
  keep_standard_streams();
  int status = core::kExitDone;
  try {
    status = work();
  } catch (const core::RunError& error) {
    session.fail(error.what(), error.hint(), error.exit_code());
    status = session.exit_code;
  } catch (const std::bad_alloc&) {
    session.fail("memory is exhausted", "", core::kExitFailed);
    status = session.exit_code;
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      session.fail("cannot start another thread", "see the limit with `ulimit -u`", core::kExitFailed);
      status = session.exit_code;
    } else {
      status = internal_error(session, error.what());
    }
  } catch (const std::exception& error) {
    status = internal_error(session, error.what());
  }
  core::flush_log();
  // A full disk or a closed pipe is noticed only here; of more than a buffer by the flag of the stream.
  const bool cannot_flush = std::fflush(stdout) != 0;
  const bool is_lost = cannot_flush ? !(session.outlives_readers && (errno == EPIPE || errno == EAGAIN))
                                    : !session.outlives_readers && std::ferror(stdout) != 0;
  if (is_lost && status == core::kExitDone) {
    session.fail("cannot write to standard output", "", core::kExitFailed);
    status = session.exit_code;
  }
  return status;
}

}  // namespace

int run_program(const std::vector<std::string>& command_line) {
  fail_writes_at_size_limit();
  Session session;
  session.command_line = command_line;
  return run_program(session, [&session] { return run(session); });
}

int run_program(const std::vector<std::string>& command_line, Host host) {
  Session session;
  session.command_line = command_line;
  session.host = std::move(host);
  return run_program(session, [&session] { return run(session); });
}

int run_recipe(const std::vector<std::string>& command_line, const resolve::Recipe& recipe, const std::string& run_id,
               Host host) {
  Session session;
  session.command_line = command_line;
  session.host = std::move(host);
  session.quiet = true;
  return run_program(session, [&] {
    configure(session);
    train_recipe(session, recipe, run_id);
    return session.exit_code;
  });
}

}  // namespace runner::cli
