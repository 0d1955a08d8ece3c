// Precompiled once for the tests, whose longest header is Catch2's.
#include <catch2/catch.hpp>

#include "runner/cmake/std_pch.h"
