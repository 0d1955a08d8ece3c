#include "runner/artifact/provenance/secrets.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <string_view>
#include <vector>

#include "runner/core/text/text.h"
#include "runner/core/text/url_password.h"

namespace runner::artifact {
namespace {

// Names, in capitals. What is a name of a parameter within a text is one of a variable, too, but not the other way:
// there "key" and "access" alone mean many things.

/// Anywhere in a name, whose separators do not count: `api_key`, `apiKey`, `X-Api-Key`.
constexpr std::array kPartsOfParameters = {
    "TOKEN",         "SECRET",    "PASSW",        "PASSPHRASE", "CREDENTIAL",    "JWT",        "COOKIE",
    "AUTHORIZATION", "SESSIONID", "SHAREDACCESS", "APIKEY",     "ACCESSKEY",     "ACCOUNTKEY", "SHAREDKEY",
    "PRIVATEKEY",    "AUTHKEY",   "SIGNINGKEY",   "STORAGEKEY", "ENCRYPTIONKEY", "CLIENTKEY",  "SUBSCRIPTIONKEY",
    "MASTERKEY",     "DEPLOYKEY", "LICENSEKEY",   "WEBHOOKURL"};
/// As a whole word of a name: PATH is no PAT.
constexpr std::array kWordsOfParameters = {"PASS", "PWD", "PW", "SIG", "SIGNATURE", "CREDS"};
/// As the end of a word: DBPW.
constexpr std::array kEndsOfWords = {"PW", "PWD"};
constexpr std::array kPartsOfVariables = {
    "PASS", "KEY", "AUTH", "SESSION", "ACCESS", "PRIVATE", "CONNECTIONSTRING", "BEARER", "WEBHOOK"};
constexpr std::array kWordsOfVariables = {"PAT", "SAS", "DSN", "OTP", "PIN", "CRED", "SID", "MNEMONIC"};

/// Words before TOKEN that make it one of a text: `pad_token`.
constexpr std::array kTextTokens = {"EOS", "BOS", "PAD", "UNK", "SEP", "CLS", "MASK"};
constexpr std::array kCurrentFolders = {"PWD", "OLDPWD"};

/// The beginnings of the tokens of services, and how many characters follow at least.
struct Beginning {
  const char* text;  ///< of a regular expression
  int follow;
};
constexpr Beginning kBeginnings[] = {
    // Hugging Face
    {"hf_", 8},
    // GitHub
    {"gh[pousr]_", 8},
    {"github_pat_", 8},
    // GitLab
    {"gl(?:pat|dt|rt|cbt|ptt|soat|ft|agent)-", 8},
    // Slack
    {"xox[a-z]-", 8},
    {"xapp-", 8},
    // Anthropic, OpenAI, OpenRouter
    {"sk-(?:ant|proj|or|svcacct|admin)-", 8},
    {"sk-", 20},
    // Stripe, Square
    {"[rs]k_(?:live|test)_", 8},
    {"whsec_", 8},
    {"sq0[a-z]{3}-", 8},
    // Groq, Perplexity, xAI, Replicate, NVIDIA
    {"gsk_", 20},
    {"pplx-", 20},
    {"xai-", 20},
    {"r8_", 20},
    {"nvapi-", 8},
    // Package registries
    {"npm_", 8},
    {"pypi-", 16},
    {"rubygems_", 8},
    {"dckr_(?:pat|oat)_", 8},
    // DigitalOcean, SendGrid, Mailgun
    {"do[opr]_v1_", 8},
    {"SG\\.", 8},
    {"key-[0-9a-f]", 31},
    // Amazon
    {"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]", 11},
    // Google
    {"AIza", 30},
    {"ya29\\.", 1},
    {"GOCSPX-", 8},
    // Vault
    {"hv[bsr]\\.", 8},
    {"s\\.[A-Za-z0-9]", 23},
    // age
    {"AGE-SECRET-KEY-", 1},
    {"AGE-PLUGIN-", 8},
    // Databricks, Shopify
    {"dapi[0-9a-f]", 31},
    {"shp(?:at|ca|pa|ss)_", 8},
    // Linear, Notion, Figma, Atlassian
    {"lin_api_", 8},
    {"ntn_", 20},
    {"figd_", 8},
    {"ATATT3", 8},
    // Grafana, Sentry, New Relic, Dynatrace
    {"gl(?:sa|c)_", 8},
    {"sntry[su]_", 8},
    {"NRAK-", 8},
    {"dt0c01\\.", 8},
    // Doppler, Pulumi, PlanetScale
    {"dp\\.(?:pt|st|ct|sa)\\.", 8},
    {"pul-[0-9a-f]", 31},
    {"pscale_\\w+_", 8},
    // Supabase, Netlify, Heroku, Fly
    {"sbp_", 20},
    {"nfp_", 20},
    {"HRKU-", 8},
    {"fo1_", 20},
    {"FlyV1 ", 8},
};

/// What else a secret looks like. `\1` and so on is what stays.
struct Form {
  const char* pattern;
  const char* instead;
};
constexpr Form kForms[] = {
    {"(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*-----|$)", "(hidden)"},
    {"(?s)PuTTY-User-Key-File-.*", "(hidden)"},
    // A header, whatever its scheme: to the end of the line or of the quoted text.
    {"(?i)\\b((?:authorization|cookie)\\\\?[\"']?\\s*:\\s*\\\\?[\"']?)[^\"'\\r\\n\\\\]+", "\\1(hidden)"},
    {"(?i)\\b(authorization=)(?:[a-z][\\w-]*\\s+)?[^\\s\"']+", "\\1(hidden)"},
    {"(?i)\\b(bearer|basic)\\s+[\\w.~+/=-]{6,}", "\\1 (hidden)"},
    // Flags of programs: a password of its own, or one after the user.
    {"(\\bsshpass\\b[^|;&\\n]*?\\s-p ?)[^\\s-]\\S*", "\\1(hidden)"},
    {"(\\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|mongo|mongosh|mongodump|7z|7za)\\b[^|;&\\n]*?\\s-p ?)"
     "[^\\s-]\\S*",
     "\\1(hidden)"},
    {"(\\b(?:docker|podman|az|oc|helm registry)\\b[^|;&\\n]*?\\blogin\\b[^|;&\\n]*?\\s-p )\\S+", "\\1(hidden)"},
    {"(\\b(?:redis-cli)\\b[^|;&\\n]*?\\s-a )\\S+", "\\1(hidden)"},
    {"(\\b(?:ldapsearch|ldapmodify|ldapadd|ldapwhoami)\\b[^|;&\\n]*?\\s-w )\\S+", "\\1(hidden)"},
    {"(\\b(?:sqlcmd|bcp|zip|unzip)\\b[^|;&\\n]*?\\s-P )\\S+", "\\1(hidden)"},
    {"(\\bsmbclient\\b[^|;&\\n]*?\\s-U [^\\s%]+%)\\S+", "\\1(hidden)"},
    {"(\\s(?:-u|--user|--proxy-user|--auth|-a)[ =]?[^\\s:=]+:)\\S+", "\\1(hidden)"},
    {"(-pass(?:in|out)? pass:)\\S+", "\\1(hidden)"},
    // A line of .netrc.
    {"(?im)(^\\s*password\\s+|\\b(?:login|account)\\s+\\S+\\s+password\\s+|\\b(?:machine\\s+\\S+|default)\\s+"
     "password\\s+)"
     "\\S+",
     "\\1(hidden)"},
    // An address that posts for whoever knows it, and a bot of Telegram.
    {"(?i)(hooks?[\\w.]*/|webhooks?/)\\S+", "\\1(hidden)"},
    {"(/bot)[0-9]+:[\\w-]+", "\\1(hidden)"},
    {"(\\b|bot)[0-9]{6,}:[\\w-]{30,}", "\\1(hidden)"},
    {"\\beyJ[\\w-]{5,}\\.[\\w-]+\\.?[\\w-]*", "(hidden)"},          // JWT
    {"\\b[MNO][\\w-]{23,}\\.[\\w-]{6}\\.[\\w-]{27,}", "(hidden)"},  // Discord
    {"\\b[\\w~.-]{3}8Q~[\\w~.-]{20,}", "(hidden)"},                 // Azure
    {"\\bSK[0-9a-f]{32}\\b", "(hidden)"},                           // Twilio
};

// `"two words"`, `{two words}`, `two words;`, `word&`
constexpr const char* kValue = R"re(\\?"[^"]*"|'[^']*'|\{[^}]*\}|[^;&"'\s][^;&"'\n]*;|[^;&"'\s]+)re";

struct Replacement {
  Replacement(const std::string& text, const char* put) : pattern(text), instead(put) {}

  RE2 pattern;
  const char* instead;
};

const std::deque<Replacement>& forms() {
  static const auto* all = [] {
    auto* made = new std::deque<Replacement>;
    for (const Form& form : kForms) made->emplace_back(form.pattern, form.instead);
    for (const Beginning& one : kBeginnings) {
      made->emplace_back("\\b" + std::string(one.text) + "[\\w.-]{" + std::to_string(one.follow) + ",}", "(hidden)");
    }
    return made;
  }();
  return *all;
}

/// In capitals: `apiKey` and `API-KEY` have the words API and KEY.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  char before = '\0';
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool begins = std::isupper(byte) != 0 && std::islower(static_cast<unsigned char>(before)) != 0;
    if ((begins || std::isalnum(byte) == 0) && !words.back().empty()) words.emplace_back();
    if (std::isalnum(byte) != 0) words.back() += static_cast<char>(std::toupper(byte));
    before = c;
  }
  return words;
}

template <typename List>
bool has(const List& list, std::string_view word) {
  return std::any_of(list.begin(), list.end(), [word](const char* one) { return word == one; });
}

template <typename List>
bool has_part_of(const List& list, const std::string& name) {
  return std::any_of(list.begin(), list.end(),
                     [&name](const char* one) { return name.find(one) != std::string::npos; });
}

/// The words that may be part of a secret's name.
std::vector<std::string> suspicious_words(std::string_view name) {
  std::vector<std::string> words;
  for (const std::string& word : words_of(name)) {
    const bool of_text = word.starts_with("TOKEN") && !words.empty() && has(kTextTokens, words.back());
    if (!of_text && !word.starts_with("TOKENI")) words.push_back(word);
  }
  return words;
}

bool is_secret_parameter(std::string_view name) {
  const std::vector<std::string> words = suspicious_words(name);
  return has_part_of(kPartsOfParameters, core::joined(words, "")) ||
         std::any_of(words.begin(), words.end(), [](const std::string& word) {
           return has(kWordsOfParameters, word) || std::any_of(kEndsOfWords.begin(), kEndsOfWords.end(),
                                                               [&](const char* end) { return word.ends_with(end); });
         });
}

/// `max_tokens=60` is no secret.
bool is_count_of_tokens(std::string_view name, std::string_view value) {
  const std::vector<std::string> words = suspicious_words(name);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("TOKEN"); }) &&
         value.size() <= 9 && value.find_first_not_of("0123456789.,;}") == std::string_view::npos;
}

/// `pattern`: before the name, the name, what separates it from its value, the value.
void hide_values(const RE2& pattern, std::string& text) {
  std::string shown;
  re2::StringPiece parts[5];
  std::size_t at = 0;
  while (pattern.Match(text, at, text.size(), RE2::UNANCHORED, parts, 5)) {
    const auto end_of = [&](const re2::StringPiece& part) {
      return static_cast<std::size_t>(part.data() - text.data()) + part.size();
    };
    const std::string_view name(parts[2].data(), parts[2].size()), value(parts[4].data(), parts[4].size());
    const bool is_secret = is_secret_parameter(name) && !is_count_of_tokens(name, value);
    shown.append(text, at, end_of(parts[3]) - at);
    if (is_secret) shown.append(kHiddenValue);
    at = end_of(is_secret ? parts[4] : parts[3]);
  }
  text = shown.append(text, at);
}

}  // namespace

bool sounds_secret(const std::string& variable) {
  if (has(kCurrentFolders, core::upper(variable))) return false;
  const std::vector<std::string> words = suspicious_words(variable);
  return is_secret_parameter(variable) || has_part_of(kPartsOfVariables, core::joined(words, "")) ||
         std::any_of(words.begin(), words.end(), [](const std::string& word) { return has(kWordsOfVariables, word); });
}

std::string hide_secrets(const std::string& text) {
  // A user without a password, or with GitHub's word in its place, is a token.
  static const RE2 lone_user("(?i)(https?://)[^/@:\\s\"']+((?::(?:x-oauth-basic)?)?@)");
  static const RE2 assigned(std::string("()([A-Za-z_][\\w.-]*)(\\\\?[\"']?\\s*[=:]\\s*)(") + kValue + ")");
  static const RE2 of_flag("(^|\\s)--?([A-Za-z][\\w.-]*)(\\s+)(\"[^\"]*\"|'[^']*'|[^\\s-]\\S*)");
  std::string shown = text;
  RE2::GlobalReplace(&shown, lone_user, "\\1(hidden)\\2");
  shown = core::hide_url_passwords(shown, kHiddenValue);
  for (const Replacement& form : forms()) RE2::GlobalReplace(&shown, form.pattern, form.instead);
  hide_values(assigned, shown);
  hide_values(of_flag, shown);
  return shown;
}

std::vector<std::string> hide_secrets(const std::vector<std::string>& command_line) {
  static const RE2 flag("--?([A-Za-z][\\w.-]*)");
  std::vector<std::string> shown;
  std::string name;  // of the flag before the word; "": none
  for (const std::string& word : command_line) {
    const bool is_value = !name.empty() && !word.starts_with('-');
    const bool is_secret = is_value && is_secret_parameter(name) && !is_count_of_tokens(name, word);
    shown.push_back(is_secret ? kHiddenValue : hide_secrets(word));
    if (is_value || !RE2::FullMatch(word, flag, &name)) name.clear();
  }
  return shown;
}

}  // namespace runner::artifact
