#pragma once

#include <string>
#include <vector>

namespace runner::artifact {

/// What stands in a record in place of a secret.
inline constexpr const char* kHiddenValue = "(hidden)";

/// Whether the name of a variable or a parameter suggests that its value is a secret.
bool sounds_secret(const std::string& name);

/// The text with kHiddenValue in place of what looks like a secret: passwords and tokens of addresses, values of
/// parameters that sound secret (`Password=...;` of a connection string, `--token ...`, JSON), keys and tokens of the
/// usual services by their form. Rather too much than too little.
std::string hide_secrets(const std::string& text);
/// The same of a command line; a word behind a flag that sounds secret is the flag's value.
std::vector<std::string> hide_secrets(const std::vector<std::string>& command_line);

}  // namespace runner::artifact
