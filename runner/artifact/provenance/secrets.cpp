#include "runner/artifact/provenance/secrets.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runner/core/text/text.h"
#include "runner/core/text/url_password.h"

namespace runner::artifact {
namespace {

// Anywhere in a name, and as a whole word of one: PATH is no PAT.
constexpr std::array<const char*, 14> kSecretParts = {
    "TOKEN",   "SECRET", "PASS",    "CREDENTIAL",        "KEY",    "AUTH",   "COOKIE", "JWT",
    "SESSION", "ACCESS", "PRIVATE", "CONNECTION_STRING", "BEARER", "WEBHOOK"};
constexpr std::array<const char*, 13> kSecretWords = {"PAT", "PWD",  "PW",    "SAS", "DSN",       "OTP",     "PIN",
                                                      "SIG", "CRED", "CREDS", "SID", "SIGNATURE", "MNEMONIC"};

// Names of parameters within a text, where "key" and "pass" alone mean many things.
#define ROUX_SECRET_NAME                                                                                           \
  "[\\w.-]*(?:token|secret|passw|passphrase|pwd|credential|jwt|cookie|authorization|session_?id|sharedaccess|"     \
  "(?:api|access|account|shared|private|secret|auth|signing|storage|encryption|client)[_-]?key|\\bsig|\\bpass\\b)" \
  "[\\w.-]*"

struct Form {
  RE2 pattern;
  const char* instead;
};

std::array<Form, 10>& forms() {
  static std::array<Form, 10> all = {{
      {RE2("(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|$)"), "(hidden)"},
      {RE2("(?i)\\b(bearer|basic)\\s+[\\w.~+/=-]{6,}"), "\\1 (hidden)"},
      // `"password": "word"`, `Password=two words;`, `token=word&`
      {RE2("(?i)(" ROUX_SECRET_NAME "\\\\?[\"']?\\s*[=:]\\s*)"
           "(?:\\\\?\"[^\"]*\"|'[^']*'|\\{[^}]*\\}|[^;&\"'\\s][^;&\"'\\n]*;|[^;&\"'\\s]+)"),
       "\\1(hidden)"},
      {RE2("(?i)(--?" ROUX_SECRET_NAME "\\s+)[^\\s-]\\S*"), "\\1(hidden)"},
      {RE2("(\\s(?:-u|--user)[ =]?[^\\s:]+:)\\S+"), "\\1(hidden)"},
      // An address that posts for whoever knows it, and a bot of Telegram.
      {RE2("(?i)(hooks?[\\w.]*/|webhooks?/)\\S+"), "\\1(hidden)"},
      {RE2("\\b[0-9]{6,}:[\\w-]{30,}"), "(hidden)"},
      {RE2("\\beyJ[\\w-]{5,}\\.[\\w-]+\\.?[\\w-]*"), "(hidden)"},
      // Hugging Face, GitHub, GitLab, Slack, OpenAI, Anthropic, Stripe, npm, PyPI, Docker, DigitalOcean, SendGrid
      {RE2("\\b(?:hf_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|sk-|[sr]k_(?:live|test)_|npm_|pypi-|dckr_pat_|dop_v1_|"
           "SG\\.)[\\w.-]{8,}"),
       "(hidden)"},
      // Amazon, Google
      {RE2("\\b(?:(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}|AIza[\\w-]{30,}|ya29\\.[\\w-]+)"), "(hidden)"},
  }};
  return all;
}

}  // namespace

bool sounds_secret(const std::string& variable) {
  const std::string name = core::upper(variable);
  if (name == "PWD" || name == "OLDPWD") return false;  // the current folder
  std::string words = "_" + name + "_";
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  const auto is_part = [&name](const char* part) { return name.find(part) != std::string::npos; };
  const auto is_word = [&words](const char* word) {
    return words.find("_" + std::string(word) + "_") != std::string::npos;
  };
  return std::any_of(kSecretParts.begin(), kSecretParts.end(), is_part) ||
         std::any_of(kSecretWords.begin(), kSecretWords.end(), is_word);
}

std::string hide_secrets(const std::string& text) {
  // A user without a password, or with GitHub's word in its place, is a token.
  static const RE2 lone_user("(?i)(https?://)[^/@:\\s\"']+((?::(?:x-oauth-basic)?)?@)");
  std::string shown = text;
  RE2::GlobalReplace(&shown, lone_user, "\\1(hidden)\\2");
  shown = core::hide_url_passwords(shown, kHiddenValue);
  for (const Form& form : forms()) RE2::GlobalReplace(&shown, form.pattern, form.instead);
  return shown;
}

}  // namespace runner::artifact
