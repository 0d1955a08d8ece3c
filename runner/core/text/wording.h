#pragma once

#include <string>

namespace runner::core {

/// What is said to people, hints and histories, passes here on its way into a Diagnostic or a Node. A test sets a
/// function that rewords it at random, to show that nothing depends on the words. Set it before other threads run; null
/// leaves words as they are.
void reword_for_test(std::string (*reword)(const std::string& text));

/// The text, or what the test makes of it.
std::string worded(std::string text);

}  // namespace runner::core
