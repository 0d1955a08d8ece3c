// Precompiled once for the command line, where most files are small and include all of this.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

#include "runner/cmake/std_pch.h"
