// Precompiled once for what is compiled with LibTorch's flags and does not include it.
#include "runner/cmake/std_pch.h"
