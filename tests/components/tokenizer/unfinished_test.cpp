#include <catch2/catch.hpp>
#include <string>

#include "components/tokenizer/chat/chat_format.h"

using components::tokenizer::find_chat_format;

// Recorded from render_jinja_template of Transformers 5.24 with continue_final_message, of templates of these formats.
TEST_CASE("a beginning of an answer is continued where Transformers continues it", "[tokenizer][chat]") {
  const std::string chatml = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n";
  const std::string llama2 = "{bos}[INST] hi [/INST] ";
  const std::string llama3 =
      "{bos}<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|><|start_header_id|>assistant<|end_header_id|>";
  struct Case {
    const char *format, *content;
    std::string text;
  };
  const Case cases[] = {
      {"chatml", "Par", chatml + "Par"},
      {"chatml", "  Par \n", chatml + "  Par \n"},
      {"chatml", "", chatml},
      {"chatml", " \n", chatml + " \n"},
      // It strips contents and writes a blank behind them, which keeps the blanks at the end.
      {"llama2", "Par", llama2 + "Par"},
      {"llama2", "  Par \n", llama2 + "Par \n"},
      {"llama2", " \n", llama2},
      // It strips contents.
      {"llama3", "Par", llama3 + "\n\nPar"},
      {"llama3", "  Par \n", llama3 + "\n\nPar"},
      {"llama3", "Par\xC2\xA0", llama3 + "\n\nPar"},
      {"llama3", "", llama3},
      {"mistral_v0_1", "  Par \n", "{bos}[INST] hi [/INST]  Par \n"},
  };
  for (const Case& c : cases) {
    INFO(c.format << ": \"" << c.content << "\"");
    const auto text = find_chat_format(c.format)->render_unfinished({{"user", "hi"}, {"assistant", c.content}});
    REQUIRE(text);
    CHECK(text.value() == c.text);
  }
  // What was said before is written as always.
  const auto longer = find_chat_format("chatml")->render_unfinished(
      {{"user", "a"}, {"assistant", "b"}, {"user", "hi"}, {"assistant", "Par"}});
  CHECK(longer.value() == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n" + chatml + "Par");
  CHECK(find_chat_format("chatml")->render_unfinished({{"user", "hi"}}).failure().message ==
        "the last message is not the assistant's, so there is no answer to continue");
  CHECK_FALSE(find_chat_format("llama2")->render_unfinished({{"assistant", "hi"}}));
}
