// Tests of the CUDA launcher on the host, for the thread, address and undefined-behaviour sanitizers:
// it gives the bits of the CPU's launcher. Input and output as those of test_core.cpp.
#include "kernel/cuda_launcher.cuh"
#include "kernel/rows.h"
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

/// Several decisions in one launch, of worlds placed before: digests of what they leave behind and of
/// all that they write.
template <class T, class Launcher>
std::vector<uint64_t> unrolled(const Inputs& inputs, const Shape& shape, const Launcher& launcher) {
  constexpr int kTurns = 8;
  TestWorlds<T> worlds(inputs, shape);
  const State<T> s = worlds.state(3);
  run_reset<Env, T>(InOrder{}, s, worlds.params, nullptr, worlds.odd.view(), shape.frames,
                    worlds.alive.data());
  const size_t rows = size_t(shape.worlds) * shape.robots;
  std::vector<T> actions(kTurns * rows * 2), reward(kTurns * rows);
  for (size_t i = 0; i < actions.size(); ++i)
    actions[i] = static_cast<T>(hashed(1, static_cast<uint32_t>(i)) * 2.4 - 1.2);
  std::vector<std::vector<T>> entries;
  ObservationView<Env, T> observation;
  for (int k = 0; k < Env::kEntries; ++k) {
    entries.emplace_back(kTurns * rows * shape.frames * Env::entry_size(k));
    observation.entry[k] = entries.back().data();
  }
  std::vector<Flags> flags;
  for (int f = 0; f < 7; ++f) flags.emplace_back(kTurns * (f < 4 ? rows : size_t(shape.worlds)));
  StepView<T> out = worlds.results();
  out.reward = reward.data();
  bool** const written[] = {&out.acted, &out.terminated,       &out.truncated,      &out.alive,
                            &out.done,  &out.world_terminated, &out.world_truncated};
  for (int f = 0; f < 7; ++f) *written[f] = flags[f].data();
  launcher.unroll(s.worlds, s.robots, kTurns,
                  Unrolled<Env, T>{s, worlds.params, {actions.data(), nullptr}, worlds.odd.view(),
                                   observation, shape.frames, out});
  Digest d;
  d.add(reward.data(), reward.size());
  for (const auto& entry : entries) d.add(entry.data(), entry.size());
  for (const Flags& f : flags) d.add(f.bytes.data(), f.bytes.size());
  return {worlds.digest(), d.value};
}

template <class T>
void test_turns(const Inputs& inputs, const char* type) {
  for (const Case& c : kCases) {
    const auto one_by_one = unrolled<T>(inputs, c.shape, CpuLauncher<OneThread>{});
    const auto in_tiles = unrolled<T>(inputs, c.shape, CudaLauncher{});
    report(one_by_one == in_tiles,
           std::string(c.name) + ", " + type + ", turns of one launch: all bits agree");
  }
}

/// A row of a ring from parts of words and of bytes.
void test_row() {
  constexpr int kSlots = 37, kRows = 3;
  const int64_t position = 2;
  std::vector<float> numbers(kSlots * 5);
  std::vector<char> flags(kSlots), both(kRows * kSlots * 2);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  for (int i = 0; i < kSlots; ++i) flags[i] = static_cast<char>(i);
  std::vector<float> ring(kRows * kSlots * 5);
  Row row{};
  row.parts = 3, row.slots = kSlots, row.rows = kRows, row.position = &position;
  const auto bytes = [](auto& vector) { return reinterpret_cast<char*>(vector.data()); };
  row.part[0] = {bytes(numbers), bytes(ring), kSlots * 20, 20, 20, 4, 0};
  row.part[1] = {bytes(flags), bytes(both), kSlots * 2, 1, 2, 1, kSlots * 5};
  row.part[2] = {bytes(flags), bytes(both) + 1, kSlots * 2, 1, 2, 1, kSlots * 6};
  row.words = kSlots * 7;
  CudaLauncher{}(static_cast<int>(row.words), 1, RowWords{row});
  bool right = true;
  for (int i = 0; i < kSlots * 5; ++i) right = right && ring[2 * kSlots * 5 + i] == numbers[i];
  for (int i = 0; i < kSlots * 2; ++i) right = right && both[2 * kSlots * 2 + i] == flags[i / 2];
  for (int i = 0; i < 2 * kSlots * 5; ++i) right = right && ring[i] == 0.0f;
  report(right, "a row of rings: all bits agree");
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
  test_turns<float>(inputs, "float32");
  test_turns<double>(inputs, "float64");
  test_row();
  return failures == 0 ? 0 : 1;
}
