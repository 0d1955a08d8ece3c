#include "runner/review/annotate.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/store/annotations.h"

namespace runner::review {
namespace {

using store::RunSummary;

constexpr std::size_t kTagBytesMax = 64 << 10;
constexpr std::size_t kNoteBytesMax = 1 << 20;

enum class Lines { kOne, kSeveral };

/// A tag and a name stand in lists, so they are one line; everything is UTF-8, because JSON and HTML have to be.
bool can_be_kept(const std::string& what, const std::string& text, std::size_t bytes_max, Lines lines,
                 core::Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& why) {
    diagnostics.error({}, "the " + what + " " + core::quote(text) + " " + why);
    return false;
  };
  if (text.size() > bytes_max) {
    return refuse("has " + std::to_string(text.size()) + " bytes, but at most " + std::to_string(bytes_max) +
                  " are allowed");
  }
  if (core::find_invalid_utf8(text) != std::string::npos) return refuse("is not UTF-8");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (lines == Lines::kSeveral && (c == '\n' || c == '\t')) continue;
    if (byte < 0x20 || byte == 0x7F) return refuse("has a control character");
  }
  return true;
}

bool are_tags(const std::vector<std::string>& tags, core::Diagnostics& diagnostics) {
  for (const std::string& tag : tags) {
    if (tag.empty()) diagnostics.error({}, "a tag is empty");
    can_be_kept("tag", tag, kTagBytesMax, Lines::kOne, diagnostics);
  }
  return !diagnostics.has_errors();
}

std::string line_of(const RunSummary& run, const std::string& said) {
  return run.id + "  " + core::escape_for_terminal(name_of(run)) + ": " + said + "\n";
}

std::string tags_line(const RunSummary& run) {
  const std::string list = core::joined(store::read_annotations(run.run_dir).tags, ", ", core::escape_for_terminal);
  return line_of(run, list.empty() ? "no tags" : "tags " + list);
}

std::optional<std::string> archive(const RunsContext& context, const RunsSetRequest& request, bool archived,
                                   core::Diagnostics& diagnostics) {
  const auto runs = find_runs(context, request.runs, diagnostics);
  if (!runs) return std::nullopt;
  std::string text;
  for (const RunSummary& run : *runs) {
    store::set_archived(run.run_dir, archived);
    text += line_of(run, archived ? "archived; `roux runs list --all` shows it" : "no longer archived");
  }
  return text;
}

}  // namespace

std::optional<std::string> runs_tag(const RunsContext& context, const RunsTagRequest& request,
                                    core::Diagnostics& diagnostics) {
  const auto run = find_run(context, request.run, diagnostics);
  if (!run || !are_tags(request.tags, diagnostics)) return std::nullopt;
  store::add_tags(run->run_dir, request.tags);
  return tags_line(*run);
}

std::optional<std::string> runs_untag(const RunsContext& context, const RunsTagRequest& request,
                                      core::Diagnostics& diagnostics) {
  const auto run = find_run(context, request.run, diagnostics);
  if (!run) return std::nullopt;
  const std::string missing = store::remove_tags(run->run_dir, request.tags);
  if (missing.empty()) return tags_line(*run);
  const std::string list = core::joined(run->tags, ", ", [](const std::string& tag) { return core::quote(tag); });
  diagnostics.error({}, run->id + " has no tag " + core::quote(missing),
                    list.empty() ? "it has no tags" : "its tags are " + list);
  return std::nullopt;
}

std::optional<std::string> runs_note(const RunsContext& context, const RunsTextRequest& request,
                                     core::Diagnostics& diagnostics) {
  const auto run = find_run(context, request.run, diagnostics);
  if (!run || !can_be_kept("note", request.text, kNoteBytesMax, Lines::kSeveral, diagnostics)) return std::nullopt;
  if (request.text.empty()) {
    diagnostics.error({}, "the note is empty");
    return std::nullopt;
  }
  store::add_note(run->run_dir, context.clock.wall_ms(), request.text);
  return line_of(*run, "note added; `roux runs show " + run->id + "` shows it");
}

std::optional<std::string> runs_rename(const RunsContext& context, const RunsTextRequest& request,
                                       core::Diagnostics& diagnostics) {
  const auto run = find_run(context, request.run, diagnostics);
  if (!run || !can_be_kept("name", request.text, kTagBytesMax, Lines::kOne, diagnostics)) return std::nullopt;
  if (request.text == "last") {
    diagnostics.error({}, "a run cannot be called \"last\"", "`last` means the newest run");
    return std::nullopt;
  }
  store::set_label(run->run_dir, request.text);
  if (request.text.empty())
    return line_of(*run, "renamed to " + core::escape_for_terminal(run->name) + ", its recipe's run_name");
  return line_of(*run, "renamed to " + core::escape_for_terminal(request.text));
}

std::optional<std::string> runs_archive(const RunsContext& context, const RunsSetRequest& request,
                                        core::Diagnostics& diagnostics) {
  return archive(context, request, true, diagnostics);
}

std::optional<std::string> runs_unarchive(const RunsContext& context, const RunsSetRequest& request,
                                          core::Diagnostics& diagnostics) {
  return archive(context, request, false, diagnostics);
}

}  // namespace runner::review
