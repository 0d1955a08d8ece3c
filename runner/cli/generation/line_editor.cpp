#include <histedit.h>
#include <locale.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <string>
#include <vector>

#include "runner/cli/generation/line_reader.h"
#include "runner/core/error.h"

namespace runner::cli {
namespace {

constexpr int kHistorySize = 2000;
constexpr std::size_t kBytesOfCharacter = 6;  // at most, in glibc's UTF-8
constexpr wchar_t kCtrlC = 3;
constexpr const wchar_t* kPasteEnd = L"\x1b[201~";
constexpr const char *kPasteOn = "\x1b[?2004h", *kPasteOff = "\x1b[?2004l";

// UTF-8, since the locale is C.UTF-8 then. What cannot be converted is left out.
std::wstring wide(const std::string& text) {
  std::wstring result(text.size(), L'\0');
  const std::size_t length = std::mbstowcs(result.data(), text.c_str(), result.size());
  result.resize(length == static_cast<std::size_t>(-1) ? 0 : length);
  return result;
}

std::string narrow(const std::wstring& text) {
  std::string result(text.size() * kBytesOfCharacter, '\0');
  const std::size_t length = std::wcstombs(result.data(), text.c_str(), result.size());
  result.resize(length == static_cast<std::size_t>(-1) ? 0 : length);
  return result;
}

/// By libedit. Reads no .editrc.
class EditedLines final : public LineReader {
 public:
  EditedLines(std::FILE* shown, ChatHistory& history) : shown_(shown), history_(history) {
    setlocale(LC_CTYPE, "C.UTF-8");  // libedit reads characters by it
    editor_ = el_init("roux", stdin, shown, stderr);
    past_ = history_winit();
    if (editor_ == nullptr || past_ == nullptr) throw core::RunError("cannot edit lines on this terminal");
    HistEventW event;
    history_w(past_, &event, H_SETSIZE, kHistorySize);
    history_w(past_, &event, H_SETUNIQUE, 1);
    for (const std::string& message : history.load()) history_w(past_, &event, H_ENTER, wide(message).c_str());
    el_wset(editor_, EL_CLIENTDATA, this);
    el_wset(editor_, EL_PROMPT, prompt_of);
    el_wset(editor_, EL_HIST, history_w, past_);
    el_wset(editor_, EL_EDITOR, L"emacs");
    el_wset(editor_, EL_SIGNAL, 1);
    // At the prompt Ctrl-C and Ctrl-Z are keys: libedit's handler would send the signal to the whole group.
    el_wset(editor_, EL_SETTY, L"-d", L"-isig", nullptr);
    el_wset(editor_, EL_ADDFN, L"roux-suspend", L"Stop the program until the shell continues it", suspend);
    el_wset(editor_, EL_BIND, L"^Z", L"roux-suspend", nullptr);
    el_wset(editor_, EL_ADDFN, L"roux-interrupt", L"Clear the line", interrupt);
    el_wset(editor_, EL_BIND, L"^C", L"roux-interrupt", nullptr);
    el_wset(editor_, EL_ADDFN, L"roux-paste", L"Insert what is pasted", paste);
    el_wset(editor_, EL_BIND, L"\\e[200~", L"roux-paste", nullptr);
    const char* terminal = std::getenv("TERM");
    pastes_ = terminal != nullptr && *terminal != '\0' && std::string(terminal) != "dumb";
  }
  ~EditedLines() override {
    if (past_ != nullptr) history_wend(past_);
    if (editor_ != nullptr) el_end(editor_);
  }
  EditedLines(const EditedLines&) = delete;
  EditedLines& operator=(const EditedLines&) = delete;

  Got read(const char* prompt, std::string& line) override {
    prompt_ = wide(prompt);
    interrupted_ = too_long_ = false;
    el_wset(editor_, EL_PREP_TERM, 1);  // before the prompt is seen: what is typed then is not echoed twice
    if (pastes_) show(kPasteOn);
    int count = 0;
    const wchar_t* typed = el_wgets(editor_, &count);
    if (pastes_) show(kPasteOff);
    if (interrupted_) {
      show("^C\n");
      return Got::kInterrupt;
    }
    if (typed == nullptr || count <= 0) {
      show("\n");
      return Got::kEnd;
    }
    line = narrow(typed);
    if (line.ends_with('\n')) line.pop_back();
    return too_long_ || line.size() > kMessageBytesMax ? Got::kTooLong : Got::kLine;
  }

  void remember(const std::string& message) override {
    HistEventW event;
    history_w(past_, &event, H_ENTER, wide(message).c_str());
    history_.add(message);
  }

 private:
  static EditedLines& of(EditLine* editor) {
    void* self = nullptr;
    el_wget(editor, EL_CLIENTDATA, &self);
    return *static_cast<EditedLines*>(self);
  }

  static const wchar_t* prompt_of(EditLine* editor) { return of(editor).prompt_.c_str(); }

  static unsigned char interrupt(EditLine* editor, wint_t) {
    of(editor).interrupted_ = true;
    return CC_EOF;
  }

  static unsigned char suspend(EditLine*, wint_t) {
    raise(SIGTSTP);  // libedit leaves the terminal as a shell expects it, and stops the job
    return CC_REDISPLAY;
  }

  /// Text that a terminal marks as pasted: its line ends end no line.
  static unsigned char paste(EditLine* editor, wint_t) {
    std::wstring text;
    wchar_t c = 0;
    while (el_wgetc(editor, &c) == 1 && c != kCtrlC) {
      text += c == L'\r' ? L'\n' : c;
      if (!text.ends_with(kPasteEnd)) {
        if (text.size() <= kMessageBytesMax) continue;
        of(editor).too_long_ = true;
        text.erase(0, text.size() / 2);
        continue;
      }
      text.resize(text.size() - std::wcslen(kPasteEnd));
      break;
    }
    while (text.ends_with(L'\n')) text.pop_back();
    el_winsertstr(editor, text.c_str());
    return CC_REFRESH;
  }

  void show(const char* text) {
    std::fputs(text, shown_);
    std::fflush(shown_);
  }

  std::FILE* shown_;
  ChatHistory& history_;
  EditLine* editor_ = nullptr;
  HistoryW* past_ = nullptr;
  std::wstring prompt_;
  bool interrupted_ = false, too_long_ = false, pastes_ = false;
};

}  // namespace

std::unique_ptr<LineReader> edited_lines(std::FILE* shown, ChatHistory& history) {
  return std::make_unique<EditedLines>(shown, history);
}

}  // namespace runner::cli
