#include "runner/cli/data/view_text.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace {

using runner::cli::learnt_of;
using runner::cli::view_text;
using runner::cli::ViewStyle;
using runner::engine::DataView;
using runner::engine::SampleView;

constexpr std::int64_t kNone = SampleView::kNoTarget;

SampleView sample_of(std::vector<std::int64_t> ids, std::vector<std::int64_t> targets) {
  SampleView sample;
  sample.ids = std::move(ids);
  sample.targets = std::move(targets);
  sample.special.resize(sample.ids.size());
  return sample;
}

std::string shown(SampleView sample, const ViewStyle& style) {
  return view_text(DataView{"train", "jsonl", "1 file", 1, {std::move(sample)}, {}}, style);
}

ViewStyle plain(std::size_t width) { return {{0, /*unicode=*/false, /*color=*/false}, width, false}; }

}  // namespace

TEST_CASE("what is learnt is the token that a position predicts", "[cli][data]") {
  const auto causal = learnt_of(sample_of({5, 6, 7, 8}, {kNone, 7, 8, kNone}));
  CHECK(causal.shifted);
  CHECK(causal.tokens == std::vector<bool>{false, false, true, true});
  CHECK(causal.targets == 2);
  // Of a masked language model: the positions themselves.
  const auto masked = learnt_of(sample_of({5, 3, 7}, {kNone, 6, kNone}));
  CHECK_FALSE(masked.shifted);
  CHECK(masked.tokens == std::vector<bool>{false, true, false});
  SampleView last = sample_of({5, 3, 4}, {kNone, kNone, 9});
  last.in_place = true;
  CHECK_FALSE(learnt_of(last).shifted);
  CHECK(learnt_of(last).tokens == std::vector<bool>{false, false, true});
  last.tokens = {"a", "b", "[MASK]"};
  last.answers = {"", "", "c"};
  last.unit = SampleView::Unit::kTokens;
  CHECK(shown(last, plain(40)).ends_with("  a|b|[MASK]\n      ^^^^^^\n  to be told: c\n"));
  // Of an encoder-decoder model: targets of another length.
  const auto translation = learnt_of(sample_of({5, 6, 7}, {9, 2}));
  CHECK_FALSE(translation.shifted);
  CHECK(translation.targets == 2);
}

TEST_CASE("marks stand below the tokens that are learnt, also in wrapped lines", "[cli][data]") {
  SampleView sample = sample_of({1, 2, 3, 4, 5}, {kNone, 3, kNone, 5, kNone});
  sample.tokens = {"<s>", "one", "two\n", "three", "four"};
  sample.special[0] = true;
  sample.parts = {{.begin = 0, .length = 5, .file = "a.jsonl", .unit = "line", .number = 12, .cut = true}};
  CHECK(shown(sample, plain(20)) ==
        "data.train: jsonl, 1 file\n\n"
        "sample 0: a.jsonl, line 12, 5 tokens, 2 with loss, cut\n"
        "  <s>|one|two\\n\n"
        "          ^^^^^\n"
        "  three|four\n"
        "        ^^^^\n");
}

TEST_CASE("bytes are shown as text, and what a terminal must not see is escaped", "[cli][data]") {
  SampleView sample;
  for (const char c : std::string("a\x1b[2J\xC3\xA4\xC3")) sample.ids.push_back(static_cast<unsigned char>(c));
  sample.unit = SampleView::Unit::kBytes;
  sample.targets.assign(sample.ids.begin() + 1, sample.ids.end());
  sample.targets.push_back('\n');
  sample.last_target = "\n";
  sample.tokens.resize(sample.ids.size());
  sample.special.resize(sample.ids.size());
  CHECK(shown(sample, plain(80)) ==
        "data.train: jsonl, 1 file\n\n"
        "sample 0: 8 bytes, 8 with loss\n"
        "  a\\x1b[2J\xC3\xA4\\xc3\n"
        "  then, to be predicted only: \\n\n");
}

TEST_CASE("each document of a packed row stands by itself", "[cli][data]") {
  SampleView sample = sample_of({1, 2, 3, 4}, {2, kNone, 4, kNone});
  sample.tokens = {"a", "b", "c", "d"};
  sample.parts = {{.begin = 0, .length = 2, .file = "a.jsonl", .unit = "line", .number = 1},
                  {.begin = 2, .length = 2, .file = "b.jsonl", .unit = "line", .number = 7}};
  CHECK(shown(sample, plain(80)) ==
        "data.train: jsonl, 1 file\n\n"
        "sample 0: 2 documents, 4 tokens, 2 with loss\n"
        "  0: a.jsonl, line 1, 2 tokens\n"
        "  a|b\n"
        "  2: b.jsonl, line 7, 2 tokens\n"
        "  c|d\n");
}

TEST_CASE("on a terminal tokens have backgrounds in turn, and learnt ones are green", "[cli][data]") {
  SampleView sample = sample_of({1, 2, 3}, {kNone, 3, kNone});
  sample.tokens = {"a", "b", "c"};
  CHECK(shown(sample, {{80, true, /*color=*/true}, 80, false})
            .ends_with("\x1b[48;5;236;37ma\x1b[0m"
                       "\x1b[48;5;240;37mb\x1b[0m"
                       "\x1b[48;5;236;92mc\x1b[0m\n"));
}
