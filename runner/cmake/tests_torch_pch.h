// The same for tests that include LibTorch, whose macro CHECK has to come before Catch2's.
#include <c10/util/Logging.h>

#include "runner/cmake/torch_pch.h"
// After it:
#include "runner/cmake/tests_pch.h"
