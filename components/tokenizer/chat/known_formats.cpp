#include <algorithm>
#include <optional>

#include "components/tokenizer/chat/chat_format.h"

namespace components::tokenizer {
namespace {

/// OpenAI's ChatML, and what was derived from it.
ChatFormat chatml(std::string name, std::optional<std::string> default_system) {
  return {.name = std::move(name),
          .default_system = std::move(default_system),
          .before_system = "<|im_start|>system\n",
          .after_system = "<|im_end|>\n",
          .before_user = "<|im_start|>user\n",
          .after_user = "<|im_end|>\n",
          .before_assistant = "<|im_start|>assistant\n",
          .assistant_end = "<|im_end|>",
          .after_assistant = "\n",
          .before_other = "<|im_start|>{role}\n",
          .after_other = "<|im_end|>\n"};
}

/// The template of Qwen 2.5 writes tools' answers as turns of the user, which the table cannot say.
ChatFormat qwen2_5() {
  ChatFormat format = chatml("qwen2_5", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");
  format.before_other = format.after_other = "";
  return format;
}

ChatFormat llama2() {
  return {.name = "llama2",
          .before_system = "<<SYS>>\n",
          .after_system = "\n<</SYS>>\n\n",
          .before_user = "{bos}[INST] ",
          .after_user = " [/INST]",
          .assistant_start = " ",
          .assistant_end = " {eos}",
          .system_in = SystemPlace::kFirstUser,
          .strip = true,
          .alternate = true};
}

ChatFormat llama3() {
  return {.name = "llama3",
          .begin = "{bos}",
          .before_system = "<|start_header_id|>system<|end_header_id|>\n\n",
          .after_system = "<|eot_id|>",
          .before_user = "<|start_header_id|>user<|end_header_id|>\n\n",
          .after_user = "<|eot_id|>",
          .before_assistant = "<|start_header_id|>assistant<|end_header_id|>\n\n",
          .assistant_end = "<|eot_id|>",
          .before_other = "<|start_header_id|>{role}<|end_header_id|>\n\n",
          .after_other = "<|eot_id|>",
          .strip = true};
}

/// With the fixed date, also where the template of 3.2 writes that of the day: a text has to be the same tomorrow.
ChatFormat llama3_1() {
  ChatFormat format = llama3();
  format.name = "llama3_1";
  format.default_system = "";
  format.before_system += "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
  format.before_other = format.after_other = "";
  format.system_in = SystemPlace::kFirstTurn;
  return format;
}

/// Mistral's releases differ in white space and in where the system message goes.
ChatFormat mistral(std::string name, SystemPlace system_in) {
  return {.name = std::move(name),
          .begin = "{bos}",
          .after_system = system_in == SystemPlace::kNowhere ? "" : "\n\n",
          .before_user = "[INST] ",
          .after_user = " [/INST]",
          .assistant_end = "{eos}",
          .system_in = system_in,
          .alternate = true};
}

std::vector<ChatFormat> mistrals() {
  ChatFormat now = mistral("mistral", SystemPlace::kFirstUser);
  now.before_user = " [INST] ";
  now.assistant_start = " ";
  ChatFormat v0_1 = mistral("mistral_v0_1", SystemPlace::kNowhere);
  v0_1.after_assistant = " ";
  ChatFormat v0_2 = mistral("mistral_v0_2", SystemPlace::kNowhere);
  ChatFormat v3 = mistral("mistral_v3", SystemPlace::kLastUser);
  v3.after_user = "[/INST]";
  v3.assistant_start = " ";
  ChatFormat nemo = mistral("mistral_nemo", SystemPlace::kLastUser);
  nemo.before_user = "[INST]";
  nemo.after_user = "[/INST]";
  return {now, v0_1, v0_2, v3, nemo};
}

ChatFormat zephyr() {
  return {.name = "zephyr",
          .before_system = "<|system|>\n",
          .after_system = "{eos}\n",
          .before_user = "<|user|>\n",
          .after_user = "{eos}\n",
          .before_assistant = "<|assistant|>\n",
          .assistant_end = "{eos}",
          .after_assistant = "\n"};
}

/// The prompt of Taori et al. 2023 without an input, turn by turn.
ChatFormat alpaca() {
  return {.name = "alpaca",
          .default_system =
              "Below is an instruction that describes a task. Write a response that appropriately "
              "completes the request.",
          .after_system = "\n\n",
          .before_user = "### Instruction:\n",
          .after_user = "\n\n",
          .before_assistant = "### Response:\n",
          .assistant_end = "{eos}",
          .after_assistant = "\n\n",
          .system_in = SystemPlace::kFirstTurn};
}

}  // namespace

const std::vector<ChatFormat>& known_chat_formats() {
  static const std::vector<ChatFormat> all = [] {
    std::vector<ChatFormat> formats = {
        chatml("chatml", std::nullopt),
        chatml("smollm2", "You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
        chatml("qwen2", "You are a helpful assistant."),
        qwen2_5(),
        llama2(),
        llama3(),
        llama3_1()};
    for (ChatFormat& format : mistrals()) formats.push_back(std::move(format));
    formats.push_back(zephyr());
    formats.push_back(alpaca());
    return formats;
  }();
  return all;
}

const ChatFormat* find_chat_format(std::string_view name) {
  const auto& all = known_chat_formats();
  const auto at = std::find_if(all.begin(), all.end(), [&](const ChatFormat& format) { return format.name == name; });
  return at != all.end() ? &*at : nullptr;
}

}  // namespace components::tokenizer
