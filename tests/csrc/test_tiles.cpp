// Tests of the CUDA launcher on the host, for the thread, address and undefined-behaviour sanitizers:
// it gives the bits of the CPU's launcher. Input and output as those of test_core.cpp.
#include "classic/cartpole.h"
#include "kernel/cuda_launcher.cuh"
#include "kernel/rows.h"
#include "launchers.h"
#include "marine/plans/actions.h"
#include "marine/plans/courses.h"
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

/// What vessels expect of actions that they hold, in two calls, and of courses that they follow.
template <class T, class Launcher>
uint64_t planned(const Inputs& inputs, const Launcher& launcher) {
  constexpr int kPlans = 3, kDecisions = 2;
  const Shape shape = {7, 5, 4, 0, 1};
  TestWorlds<T> worlds(inputs, shape);
  run_reset<Env, T>(InOrder{}, worlds.state(3), worlds.params, nullptr, worlds.odd.view(),
                    shape.frames, worlds.alive.data());
  const int vessels = shape.worlds * shape.robots;
  const size_t rows = size_t(kPlans) * vessels;
  const auto seen = worlds.odd.view();
  const SightView<T> sight = {vessels, seen.entry[0], seen.entry[1], seen.entry[2]};
  std::vector<T> action(rows * 2), motion(rows * Ahead<T>::kRows), clearance(rows * kObjects),
      remaining(rows), danger(rows), left(rows);
  for (size_t i = 0; i < action.size(); ++i)
    action[i] = static_cast<T>(hashed(1, static_cast<uint32_t>(i)) * 2.4 - 1.2);
  ObservationRows<T> expected({shape.worlds, shape.robots * kPlans, 0, 0, 1});
  const auto view = expected.view();
  Flags shown(int64_t{vessels} * kObjects);
  for (size_t i = 0; i < shown.bytes.size(); ++i) shown.bytes[i] = i % 3 != 0;
  for (const int first : {0, kDecisions})
    launcher(vessels, kPlans,
             PlanActionsPhase<Env, T>{worlds.params,
                                      sight,
                                      {action.data(), nullptr},
                                      {motion.data(), clearance.data(), remaining.data()},
                                      {view.entry[0], view.entry[1], view.entry[2], shown.data(), T(1)},
                                      kPlans,
                                      first,
                                      kDecisions});

  CourseParams<T> costs;
  costs.each([](const char*, int, T* to) { *to = T(1); });
  costs.derive({});
  const std::vector<T> courses = {T(-0.5), T(1), T(0), T(1), T(0.5), T(0.5)};
  launcher(vessels, PlanCoursesPhase<Env, T>::groups(kPlans),
           PlanCoursesPhase<Env, T>{worlds.params, costs, sight, courses.data(), danger.data(),
                                    left.data(), kPlans, kDecisions});
  Digest d;
  for (const auto* written : {&motion, &clearance, &remaining, &danger, &left})
    d.add(written->data(), written->size());
  for (const auto& entry : expected.entry) d.add(entry.data(), entry.size());
  return d.value;
}

/// Decisions of an environment with one robot a world: a digest after each and after its resets.
template <class T, class Launcher>
std::vector<uint64_t> poles(const Launcher& launcher) {
  constexpr int kWorlds = 3 * kRowAlignment;  // no padding, so that a digest may take all
  std::vector<double> numbers = {9.8, 1.0, 0.1, 0.5, 10.0, 0.02, 0.2, 2.4, 0.05, 5.0};
  numbers.resize(param_names<CartPole>().size());  // after the decisions of an episode all is off
  const auto params = unpack_params<CartPole, T>(numbers.data());
  Tables tables;
  for (const char* size : {"worlds", "stride"}) tables.set_size(size, kWorlds);
  for (const char* size : {"robots", "stages"}) tables.set_size(size, 1);
  std::map<std::string, std::vector<char>> tensors;
  const auto specs = joined({CartPole::state(), CartPole::tables(), StepView<T>::specs()});
  for (const TensorSpec& spec : specs) {
    size_t bytes = spec.number == Number::kReal ? sizeof(T) : spec.number == Number::kInt ? 4 : 1;
    for (const Extent& e : spec.shape) bytes *= e.name == nullptr ? e.size : tables.size(e.name);
    tensors[spec.name].resize(bytes);
    tables.add(spec.name, tensors[spec.name].data());
  }
  *tables.at<T>("stage") = T(1);  // robots
  const CartPole::State<T> state(tables);
  const StepView<T> results(tables);
  std::vector<T> observed[2];
  ObservationView<CartPole, T> views[2];
  for (int i = 0; i < 2; ++i) {
    observed[i].resize(kWorlds * CartPole::kObservationSize);
    views[i].entry[0] = observed[i].data();
  }
  std::vector<uint64_t> digests;
  const auto note = [&] {
    Digest d;
    for (const auto& [name, bytes] : tensors) d.add(bytes.data(), bytes.size());
    for (const auto& numbers_seen : observed) d.add(numbers_seen.data(), numbers_seen.size());
    digests.push_back(d.value);
  };
  run_reset<CartPole, T>(launcher, state, params, nullptr, views[1], 1, results.alive);
  note();
  std::vector<int64_t> action(kWorlds);
  for (int t = 0; t < kSteps; ++t) {
    for (int w = 0; w < kWorlds; ++w) action[w] = hashed(t, w) < 0.5 ? 0 : 1;
    run_step<CartPole, T>(launcher, state, params, {nullptr, action.data()}, views[(t + 1) % 2],
                          views[t % 2], 1, results);
    note();
    run_reset<CartPole, T>(launcher, state, params, results.done, views[t % 2], 1, results.alive);
    note();
  }
  return digests;
}

template <class T>
void test_others(const Inputs& inputs, const char* type) {
  report(planned<T>(inputs, InOrder{}) == planned<T>(inputs, CudaLauncher{}),
         std::string("plans, ") + type + ": all bits agree");
  report(poles<T>(InOrder{}) == poles<T>(CudaLauncher{}),
         std::string("cart and pole, ") + type + ": all bits agree");
}

/// A row of a ring from parts of words and of bytes; the words are five of seven of each slot.
void test_row() {
  constexpr int kSlots = 37, kRows = 3;
  const int64_t position = 2;
  std::vector<float> numbers(kSlots * 7);
  std::vector<char> flags(kSlots), both(kRows * kSlots * 2);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  for (int i = 0; i < kSlots; ++i) flags[i] = static_cast<char>(i);
  std::vector<float> ring(kRows * kSlots * 5);
  Row row{};
  row.parts = 3, row.slots = kSlots, row.rows = kRows, row.position = &position;
  const auto bytes = [](auto& vector) { return reinterpret_cast<char*>(vector.data()); };
  row.part[0] = {bytes(numbers), bytes(ring), kSlots * 20, 20, 28, 20, 4, 0};
  row.part[1] = {bytes(flags), bytes(both), kSlots * 2, 1, 1, 2, 1, kSlots * 5};
  row.part[2] = {bytes(flags), bytes(both) + 1, kSlots * 2, 1, 1, 2, 1, kSlots * 6};
  row.words = kSlots * 7;
  CudaLauncher{}(static_cast<int>(row.words), 1, RowWords{row});
  bool right = true;
  for (int i = 0; i < kSlots * 5; ++i)
    right = right && ring[2 * kSlots * 5 + i] == numbers[i / 5 * 7 + i % 5];
  for (int i = 0; i < kSlots * 2; ++i) right = right && both[2 * kSlots * 2 + i] == flags[i / 2];
  for (int i = 0; i < 2 * kSlots * 5; ++i) right = right && ring[i] == 0.0f;
  report(right, "a row of rings: all bits agree");
}

template <class T>
void test_type(const Inputs& inputs, const char* type) {
  test_bits<T>(inputs, type);
  test_turns<T>(inputs, type);
  test_others<T>(inputs, type);
}

}  // namespace
}  // namespace marinenav::test

int main() {
  using namespace marinenav::test;
  Inputs inputs;
  if (!inputs.read()) return 2;
  inputs.param("episode.max_steps") = 5;  // worlds end, and are placed anew
  test_type<float>(inputs, "float32");
#ifndef __SANITIZE_THREAD__  // threads meet in the same places with either type
  test_type<double>(inputs, "float64");
#endif
  test_row();
  return failures == 0 ? 0 : 1;
}
