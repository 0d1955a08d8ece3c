#include "runner/cli/group/import/options_page.h"

#include <vector>

#include "runner/words/table.h"

namespace runner::cli {
namespace {

using Kind = words::Outcome::Kind;

/// What stands for an outcome that sets nothing; "" for one that does.
const char* verdict(Kind kind) {
  switch (kind) {
    case Kind::kTaken:
    case Kind::kChanged: return "";
    case Kind::kNoEffect: return "*no effect*";
    case Kind::kPlanned: return "*planned*";
    case Kind::kRefused: return "*refused*";
  }
  return "";
}

/// What a word says beside its path: why, and what to do.
std::string note_of(const words::Word& word) {
  std::string text = !word.note.empty() ? word.note : word.outcome.text;
  if (!word.outcome.instead.empty()) text += (text.empty() ? "" : "; ") + word.outcome.instead;
  if (!text.empty()) return text;
  for (const auto& [value, outcome] : word.values) {
    const std::string verdict_of_value = verdict(outcome.kind);
    text += (text.empty() ? "`" : ", `") + value + "`";
    if (outcome.kind == Kind::kNoEffect && !outcome.text.empty()) text += ": " + outcome.text;
    if (outcome.kind != Kind::kNoEffect && !verdict_of_value.empty()) text += ": " + verdict_of_value;
    if (verdict_of_value.empty() && outcome.value) text += " is `" + outcome.value->scalar_text() + "`";
  }
  if (word.other && *verdict(word.other->kind) != '\0') text += std::string("; others: ") + verdict(word.other->kind);
  return text;
}

/// A row for each word, and for those within it.
std::string rows(const std::vector<words::Word>& words, const std::string& prefix) {
  std::string text;
  for (const words::Word& word : words) {
    const std::string sets = word.path.empty() ? "" : "`" + word.path + "`";
    const std::string becomes = word.outcome.kind == Kind::kTaken ? sets : verdict(word.outcome.kind);
    const std::string note = note_of(word);
    const bool is_section = !word.inner.empty() && becomes.empty() && note.empty();
    if (!is_section) text += "| `" + prefix + word.key + "` | " + becomes + " | " + note + " |\n";
    text += rows(word.inner, prefix + word.key + ".");
  }
  return text;
}

std::string table(const char* title, const char* intro, const std::vector<words::Word>& words) {
  return "\n## " + std::string(title) + "\n\n" + intro + "\n\n| Key | Becomes | |\n| --- | --- | --- |\n" +
         rows(words, "");
}

}  // namespace

std::string accelerate_page() {
  const auto words_of = [](const char* name) -> const auto& { return words::table_of(name).words; };
  const auto flags_of = [&](const char* launcher) -> const auto& {
    return words::find(words_of("launch"), launcher)->inner;
  };
  return "<!-- Written by `roux config options` from the tables that `roux config import` reads; a test compares it. "
         "-->\n"
         "# Options of Accelerate\n\n"
         "What `roux config import FILE` makes of a config file of Accelerate, FSDP's and DeepSpeed's words in it or "
         "in a\n"
         "recipe, and the flags of launchers. A `*` stands for the rest of a name.\n" +
         table("Keys of the config file", "Flags of `accelerate launch` have the same names.", words_of("accelerate")) +
         table("Fields of FSDP",
               "Of `fsdp_config`, where `fsdp_` may stand before each, and of `FullyShardedDataParallelPlugin`.",
               words_of("fsdp")) +
         table("Fields of DeepSpeed",
               "Of `deepspeed_config`, `DeepSpeedPlugin` and DeepSpeed's own JSON. Keys of a section without a row are "
               "as "
               "the section's row\nsays; other keys are errors.",
               words_of("deepspeed")) +
         table("Flags of deepspeed", "They become what is named here, of the config file.", flags_of("deepspeed")) +
         table("Flags of torchrun", "Likewise.", flags_of("torchrun"));
}

}  // namespace runner::cli
