#pragma once

#include <random>
#include <string>
#include <vector>

namespace tests {

/// What random choices of a test begin with: ROUX_TEST_SEED, otherwise another number in each process. Printed when it
/// is first asked for, so that a failure can be repeated.
unsigned seed();

/// Whether ROUX_TEST_ALL=1 asks for all crash points and kills. Without it a test takes about a third of them, drawn by
/// seed(): over many runs of the tests all of them come up.
bool takes_all();

/// `all` with ROUX_TEST_ALL=1, otherwise a third of it.
int share_of(int all);

/// Some of the points 1 to `kinds.size()`, in their order; `kinds` says of what kind each is. The first and the last of
/// each kind are among them, and a fifth of the others: a third in all. All of them with ROUX_TEST_ALL=1.
std::vector<int> drawn_points(const std::vector<std::string>& kinds, std::mt19937& random);

}  // namespace tests
