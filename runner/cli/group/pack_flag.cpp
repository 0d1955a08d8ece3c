#include "runner/cli/group/pack_flag.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "runner/cli/flags.h"

namespace runner::cli {
namespace {

using Kind = pretrained::PackedWeight::Kind;

struct Word {
  const char* word;
  pretrained::PackForm form;
};
constexpr Word kWords[] = {{"nf4", {Kind::kNf4, false}},
                           {"nf4-double", {Kind::kNf4, true}},
                           {"fp4", {Kind::kFp4, false}},
                           {"fp4-double", {Kind::kFp4, true}},
                           {"int8", {Kind::kInt8, false}}};

}  // namespace

void add_pack_flag(Command command, const char* flag, std::string& word, const char* help) {
  std::vector<std::string> words;
  for (const Word& one : kWords) words.emplace_back(one.word);
  accept_only(command.add_option(flag, word, help).type_name("FORM"), words);
}

std::optional<pretrained::PackForm> pack_form(const std::string& word) {
  const auto* const at =
      std::find_if(std::begin(kWords), std::end(kWords), [&word](const Word& one) { return word == one.word; });
  return at != std::end(kWords) ? std::make_optional(at->form) : std::nullopt;
}

}  // namespace runner::cli
