// Tests of the CUDA launcher on the host, for the thread, address and undefined-behaviour sanitizers:
// it gives the bits of the CPU's launcher. Input and output as those of test_core.cpp.
#include "kernel/cuda_launcher.cuh"
#include "launchers.h"
#include "report.h"
#include "worlds.h"

namespace marinenav::test {
namespace {

struct Case {
  const char* name;
  Shape shape;
};

// One tile and a part of one; more robots than a block has warps; observations that do not fit into
// shared memory.
const Case kCases[] = {
    {"38 worlds, 5 robots, 4 buoys, 4 cores", {38, 5, 4, 4, 1}},
    {"33 worlds, 11 robots, 2 buoys", {33, 11, 2, 0, 1}},
    {"3 worlds, 2 robots, 3 cores, 8 frames", {3, 2, 0, 3, 8}},
};
constexpr int kSteps = 12;

template <class T>
void test_bits(const Inputs& inputs, const char* type) {
  for (const Case& c : kCases) {
    const auto one_by_one = rollout<T>(inputs, c.shape, false, kSteps, InOrder{});
    const auto in_tiles = rollout<T>(inputs, c.shape, false, kSteps, CudaLauncher{});
    report(one_by_one.digests == in_tiles.digests,
           std::string(c.name) + ", " + type + ": all bits agree");
  }
}

}  // namespace
}  // namespace marinenav::test

int main() {
  using namespace marinenav::test;
  Inputs inputs;
  if (!inputs.read()) return 2;
  inputs.param("episode.max_steps") = 5;  // worlds end, and are placed anew
  test_bits<float>(inputs, "float32");
  test_bits<double>(inputs, "float64");
  return failures == 0 ? 0 : 1;
}
